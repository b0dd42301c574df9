// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record says what is kept of the objects of a workload cluster that have to do with Applications, and which
// objects these are. It decides while objects arrive, and neither asks nor writes anything.
//
// # What it guarantees
//
//   - Of an object that names no Application, is owned by none and bears no mark that one looks for, nothing is kept.
//     Nothing that is kept holds on to the object that it is of.
//   - Of two records that are equal, Applications show and do the same.
//   - What a record takes is said by its Size, which the budget of the watches is charged with.
//   - What an Application sees follows from its spec and the class of the cluster alone, so that it tells nothing about
//     what there is.
//
// # Where to change what
//
//   - what is kept: record.go, and reduce.go for how it is read from an object;
//   - by what an Application discovers objects: marks.go, and inventory.go for the inventories of Flux;
//   - for how many marks a cluster, a namespace and an Application may look: wanted.go;
//   - what the Applications of a namespace may see: sight.go;
//   - how it takes little memory: packed.go, labels.go, texts.go. What Applications say most is in vocabulary.json.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. A Reducer is one cluster's, and shares no text, mark or record with that of another. Labels that are equal
// are held once for all clusters, of which nobody is told. What an API server sends is bounded here: names, owners
// (16), marks (512 characters), entries of inventories (512) and texts.
package record
