// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why explains why something does not work, from fetched objects. It does no I/O.
//
// The fetched objects form a graph of Things: the object in question and its transitive dependencies, across the hub
// and a workload cluster. Each Thing is read by its role into findings. A finding is either the thing's own (a right is
// missing, the provider cannot create a bucket) or derived: it only reports a problem below (a composite is not ready
// because a bucket is not). A derived finding is explained by any finding below it. The remaining findings are the
// causes, the worst first, and among equally bad ones the deepest.
//
// It guarantees:
//
//   - The first cause is never a derived finding if something below explains it.
//   - A cause that blocks everything, such as a cluster without a connection, comes before failures behind it.
//   - What could not be read is reported separately, and is never a cause.
package why
