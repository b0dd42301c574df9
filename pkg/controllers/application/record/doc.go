// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record defines the records kept of a workload cluster's objects that matter to Applications, and selects
// these objects. It decides on their arrival, and does no I/O.
//
// It guarantees:
//
//   - Nothing is kept of an object that names no Application, is owned by none and bears no wanted mark. Records do not
//     retain the objects they are made from.
//   - Applications show and do the same for equal records.
//   - Size is a record's memory, which counts towards the budget of the watches.
//   - What an Application sees follows from its spec and the class of the cluster alone, so it reveals nothing about
//     which objects exist.
//
// What does the owner of one workload cluster gain? Nothing. A Reducer belongs to one cluster, and shares no text, mark
// or record with another's. Equal labels are stored once for all clusters, which cannot be observed. Data from an API
// server is bounded here: names, owners (16), marks (512 characters), entries of inventories (512) and texts.
package record
