// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multicluster is the thin glue between Masthead's controllers and sigs.k8s.io/multicluster-runtime. It takes
// multicluster-runtime's interfaces as they are, and replaces the parts of v0.24.1 that let one cluster harm another.
//
// What it guarantees, for a controller made by NewController whose source are Instances that watch with kindwatch:
//
//   - A cluster that is dead, slow, half broken, or that lacks a kind, delays no other cluster: not at the start of the
//     manager, not when it is engaged, not in the queue. Engage never blocks.
//   - Every cluster gets its turn in the queue, and only a part of the workers, which it earns (FairQueue).
//   - The work of a cluster that is not connected is held, and that of a cluster that left is purged at once (Gate).
//   - After a cluster has been disengaged, nothing of it is left: no goroutine, no handler, no queued item, no
//     back-off, no metric series.
//   - A manager that is told to end does, also the controllers of the hub, which have no clusters to be fair to
//     (NewHubQueue).
//   - No call hangs (WithDeadlines); every log line says which cluster it is about (LogConstructor).
//
// # Locks
//
// Gate.mu is taken before fairQueue.mu; a queue never calls the Gate with its lock held. Controller.mu is taken alone.
// No lock is held during I/O or while foreign code runs, but for ForCluster of a source, which must not do I/O.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing is read or written here on anybody's behalf. What the owner of a cluster controls is how much work it makes,
// how long its API server takes to answer, and which definitions it serves. The first costs the others at most one turn
// per round and a quarter of the workers. The second gets it one worker among clusters that hang (lanes.go): a healthy
// cluster waits for the workers of such clusters for two seconds at most, and each of them can do that once per
// penalty. The third parks or wakes watches on that same cluster; a definition that changes all the time costs one
// small request per change and kind. Names of objects in the cluster appear in logs as values, never as messages or
// keys.
package multicluster
