// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package look fetches the objects related to a question, from the hub and from a workload cluster, for package why to
// read.
//
// It guarantees that an object which cannot be fetched becomes a Thing that says so, and that a walk terminates: the
// number of objects is bounded, and each is visited once per path.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? They can name objects
// in what they write (a reference, a component), which are then looked up in their own cluster. Lookups in the hub use
// names from the hub's own objects, and the claim's kind and name.
package look
