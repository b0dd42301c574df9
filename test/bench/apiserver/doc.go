// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver talks to the API servers on which the benchmarks measure, with plain HTTP: it takes as little as
// possible of the processor that benchmark and measured programs share, and it has no limits of its own.
package apiserver
