// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard prevents a panic in code that handles data of one workload cluster from ending the process.
//
// An unrecovered panic ends the manager, and with it the work for the whole fleet. After a restart the same object
// would end it again. So every Masthead goroutine that handles data of a workload cluster runs under the Guard of the
// connection to that cluster. The Guard recovers, and reports the panic to the connection, which logs it with its
// stack, counts it, and ends: the cluster is disconnected with the reason Panicked, and reconnected after a back-off.
// Other clusters are not affected.
//
// # What is guarded
//
//   - Connections (pkg/providers/connection): the steps of the reconciler, dialling, response bodies, the cache, the
//     hand-over from one connection to the next, drains and offboarding.
//   - Watches (pkg/kindwatch): lists, watches, later delivery to followers of a shared kind, and handlers, wherever an
//     event comes from.
//   - Yielding to others (pkg/budget). The connection does not end for it.
//   - The decoders of these watches (pkg/dynamicclient), which client-go runs in its own goroutines.
//   - Controllers (pkg/multicluster): sources, instances, and the reconciles of an engaged cluster. For a cluster that
//     is not engaged, controller-runtime recovers a panic and turns it into an error.
//   - Goroutines that controllers start when they leave a cluster.
//
// # What is not guarded
//
//   - Goroutines of net/http, which read and write HTTP/2 frames and TLS records. They have no hook and are fuzzed
//     upstream.
//   - client-go's informers with their decoders and handlers, since they re-panic after recovering. No controller uses
//     an informer on a workload cluster: Masthead watches with kindwatch.
//   - Errors that the runtime cannot recover: concurrent map writes, an exhausted stack or memory.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. An object that makes the manager panic costs its own cluster the connection. A panic value can contain text
// from the cluster. It is truncated and quoted, and appears only in the log, in no condition, event or metric.
package guard
