// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claims is the load of the benchmarks: claims of a kind that is the same for every program that carries them,
// created in workload clusters and followed into the hub and back by the package's own watches. There is no Crossplane:
// the benchmarks would measure Crossplane then.
package claims
