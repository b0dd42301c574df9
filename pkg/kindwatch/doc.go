// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindwatch watches a changing set of kinds in one cluster at a bounded cost. It exists because a
// controller-runtime cache never stops an informer, stores whole objects, and blocks when a kind is not served. It
// guarantees:
//
//   - One watch per kind, in one goroutine, however many owners request it. It resumes where it ended, unless its
//     version or what was kept is gone. A kind without owners is stopped after Options.Linger. A
//     kind that is not served, or may not be listed, is parked and retried; nothing blocks, and other kinds are not
//     affected.
//   - Objects are kept as JSON without managedFields and last-applied-configuration, and decoded when they are read, or
//     reduced to Records of selected ones (Reduce), of which only changes are reported. A kind over its budget is
//     TooLarge: dropped, and retried with back-off.
//   - Events of a kind are delivered serially, after the store has changed. Differences found by a list after a gap are
//     reported, deletions and replaced objects included. Observe makes reads return what the caller has just written.
//   - A kind that is not served, or may not be read, is never "all objects are deleted": reads return ErrNotSynced. A
//     kind that can be neither listed nor watched for Options.StaleAfter is Stale, and its last known objects are
//     served.
//   - Every object has the requested kind and a valid name, even if the server sends others.
//   - A Resolver maps kinds by the discovery document of one group, never failing as a whole. Progress says which kinds
//     are not synced, with a Cause out of a fixed set.
//
// Watchers with the same Options.Shared share one watch and one copy. Observe, Retry and Relist of one affect all.
//
// What a Watcher keeps is charged to the cluster's account; a cluster gets its share of the
// places of Options.Lists; a panic costs it the connection (Options.Guard).
package kindwatch
