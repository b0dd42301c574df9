// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why says why something does not work, from what was fetched about it. There is no I/O in it.
//
// What was fetched is a graph of Things: the object that was asked about, what it needs, what that needs, across the
// hub and a workload cluster. Each Thing is read by its role into findings. A finding is either the thing's own (a
// right is missing, the provider cannot create a bucket) or derived: it only says that something below is not well (a
// composite is not ready because a bucket is not). A derived finding is explained by any finding below it. What is left
// are the causes, the worst first, and of those that are equally bad the deepest.
//
// It guarantees:
//
//   - The first cause is never a derived finding if there is something below that explains it.
//   - What hinders everything, such as a cluster to which there is no connection, comes before what failed behind it.
//   - What could not be looked at is told apart, and is never a cause.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it is a
// function of objects that whoever asks may read.
package why
