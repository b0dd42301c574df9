// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile is a library of API servers that mean harm, for tests and benchmarks.
//
// Attacks lists them. Each says what harm it intends and which guard of Masthead answers it; Start runs one. A server
// passes whatever has to be passed for its harm to arrive: one that attacks lists answers probes, says which cluster it
// is, and has discovery like an honest one, so that it is connected, engaged and watched. For that each has an Honest
// behind it, a small API server that keeps objects in memory and answers what its attack leaves alone. With
// Collections, an Honest is a giant: a cluster with very many or very large objects, made while they are sent.
//
// # Guarantees
//
//   - Loopback only: a server listens at a port of 127.0.0.1 of its own and dials nobody.
//   - Bounded: an answer that has no end ends at Options.MaxBytes or after Options.MaxTime. A server keeps no more
//     connections than maxConnections, and what it sends again and again it makes once, so that it costs the process
//     that runs it little.
//   - Close ends every connection and every goroutine before it returns.
//   - What a server does depends on its requests and a fixed seed, so that a failure can be repeated.
//
// The owner of a workload cluster gains nothing through it: it is not part of the product.
package hostile
