// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver talks to the API servers of the benchmarks with plain HTTP: it uses as little as possible of the
// CPU that the benchmark and the measured programs share, and it has no limits of its own.
package apiserver
