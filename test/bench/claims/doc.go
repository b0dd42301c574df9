// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claims is the load of the benchmarks: claims of a kind that is the same for whatever carries them, created in
// workload clusters and followed into the hub and back by watches of its own. There is no Crossplane: it would be what
// is measured.
package claims
