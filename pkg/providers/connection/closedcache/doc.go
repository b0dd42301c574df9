// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package closedcache is the cache of a workload cluster: closed, because informers exist in it only if a controller
// asked for them, and trimmed, because managed fields and what kubectl apply adds are not kept.
//
// It guarantees that the content of Secrets and ConfigMaps is in no cache, and that a cluster which lacks an indexed
// kind can be connected all the same. cache.go is all there is.
//
// What does the owner of one workload cluster gain? Their objects are kept as far as a controller needs them. How much
// memory that may be is bounded by the budget, not here.
package closedcache
