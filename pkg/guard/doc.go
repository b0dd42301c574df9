// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard keeps a panic in code that handles data of one workload cluster from ending the process. Every Masthead
// goroutine that handles such data runs under the Guard of that cluster's connection, which recovers, logs the stack,
// counts it, and ends the connection with the reason Panicked. Otherwise the same object would end the manager after
// each restart.
//
// Guarded are the steps, bodies, caches, drains and offboarding of connections, the watches of pkg/kindwatch with
// their decoders, yielding (pkg/limits, for which the connection does not end), and the instances and reconciles of
// controllers. Not guarded are goroutines of net/http, client-go's own watches and informers, which no controller uses
// on a workload cluster, and errors that the runtime cannot recover.
//
// A panic value can contain text of the cluster: it is truncated and quoted, and only in the log.
package guard
