// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package multicluster is the thin glue between Masthead's controllers and sigs.k8s.io/multicluster-runtime. It takes
// multicluster-runtime's interfaces as they are, and replaces the parts that let one cluster harm another.
//
// It guarantees, for a controller made by NewController with Instances that watch with kindwatch:
//
//   - A cluster that is dead, slow, partially broken, or lacks a kind, delays no other cluster: neither at manager
//     start, nor on engagement, nor in the queue. Engage never blocks.
//   - Clusters are served in turn, and each gets only a part of the workers, which it earns (FairQueue).
//   - Requests of a disconnected cluster are held, and those of a cluster that left are purged at once (Gate).
//   - After a cluster is disengaged, it leaves no goroutine, handler, queued item, back-off or metric series behind.
//   - A manager that is stopped ends.
//   - No call hangs (WithDeadlines); every log line says which cluster it is about (LogConstructor).
//
// Gate.mu is taken before fairQueue.mu; a queue never calls the Gate with its lock held. No lock is held during I/O or
// while foreign code runs, except that of Instances in Added, Removed, IfCurrent and IfGone, which must not do I/O.
//
// What does the owner of one workload cluster gain? Requests in any number cost other clusters at most one turn per
// round and a quarter of the workers. A hanging API server gets one worker in the slow lane (lanes.go): a healthy
// cluster waits for it for two seconds at most, once per penalty. A definition that changes constantly costs one small
// request per change and kind. Names of objects appear in logs as values, never as messages or keys.
package multicluster
