// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package look fetches what has to do with a question, from the hub and from a workload cluster, for package why to
// read.
//
// It guarantees that what cannot be fetched is a Thing that says so, and that a walk ends: so many objects are looked
// at, and each once on the way to another.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? They can name objects
// in what they write (a reference, a component), which are then looked for in their own cluster. What is looked for in
// the hub is named by the hub's own objects, and by the claim's kind and name.
package look
