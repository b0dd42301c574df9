// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view caches the state of the hub and of the engaged workload clusters, from watches alone.
//
// Hub holds the published kinds, the claims and their sources, and the claims waiting for a place. Clusters holds one
// Cluster for each engaged workload cluster: the kinds that are followed there, and the Secrets that were written. Both
// turn events into requests. This package accesses API servers only by watching.
//
// The cache of a cluster is bounded by what the cluster has, and is dropped with it. The cost of a query about one
// cluster depends on what that cluster has, and not on the size of the fleet.
package view
