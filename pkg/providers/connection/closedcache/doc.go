// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package closedcache is the cache of a workload cluster. It is closed: informers exist only if a controller requested
// them. It is trimmed: managed fields and the annotation of kubectl apply are removed.
//
// It guarantees that the content of Secrets and ConfigMaps is never cached, and that a cluster without an indexed kind
// can still be connected. The implementation is cache.go.
//
// What does the owner of one workload cluster gain? Their objects are kept as far as a controller needs them. The
// budget bounds the memory, not this package.
package closedcache
