// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile is a library of malicious API servers, for tests and benchmarks.
//
// Attacks lists them. Each describes the harm that it intends and the guard of Masthead against it; Start runs one. A
// server passes all checks that come before its attack: one whose attack is in lists answers probes, identifies its
// cluster, and serves discovery like an honest one, so that it is connected, engaged and watched. For that each has an
// Honest behind it, a small API server that keeps objects in memory and answers the requests that the attack does not
// answer. With Collections, an Honest is a giant: a cluster with very many or very large objects, which are created
// while they are sent.
//
// # Guarantees
//
//   - Loopback only: a server listens on its own port of 127.0.0.1 and opens no connections.
//   - Bounded: an endless answer ends at Options.MaxBytes or after Options.MaxTime. A server keeps no more connections
//     than maxConnections, and it creates only once what it sends repeatedly, so that it costs the process that runs it
//     little.
//   - Close ends every connection and every goroutine before it returns.
//   - What a server does depends on its requests and a fixed seed, so that a failure can be repeated.
//
// The owner of a workload cluster gains nothing through it: it is not part of the product.
package hostile
