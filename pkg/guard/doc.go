// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps a panic in code that handles data of one workload cluster from ending the process.
//
// A panic that nobody recovers ends the manager, and with it the work for the whole fleet. After a restart the same
// object would end it again. So every goroutine of ours that handles data of a workload cluster runs under the Guard of
// the connection to that cluster. The Guard recovers, and reports the panic to the connection, which logs it with its
// stack, counts it, and ends: the cluster is disconnected with the reason Panicked, and is connected again after a
// back-off. Other clusters are not touched.
//
// # What is guarded
//
//   - Connections (pkg/providers/connection): the steps of the reconciler, dialling, the bodies of answers, the cache,
//     the hand-over from one connection to the next, drains and what offboards a cluster.
//   - Watches (pkg/kindwatch): lists, watches, handlers, and what a follower of a shared kind is told later.
//   - The decoders of these watches (pkg/dynamicclient), which client-go runs in goroutines of its own.
//   - Controllers (pkg/multicluster): sources, instances, and the reconciles of an engaged cluster. A panic of one that
//     is not engaged is recovered by controller-runtime and is an error of the request.
//   - What controllers start themselves when they leave a cluster.
//
// # What is not guarded
//
//   - Goroutines of net/http, which read and write HTTP/2 frames and TLS records. They have no hook, and are fuzzed
//     upstream.
//   - client-go's informers with their decoders and handlers, since they panic again after they have recovered. No
//     controller uses an informer on a workload cluster: Masthead watches with kindwatch.
//   - What the runtime does not let anybody recover: concurrent writes to a map, an exhausted stack or memory.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing. Who finds an object that makes the manager panic loses the connection of that cluster. The value of a panic
// can hold text of the cluster. It is cut and quoted, appears in the log alone, and in no condition, event or metric.
package guard
