// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index caches the state of the hub and of the engaged workload clusters, from watches alone, and what is in
// memory between two reconciles.
//
// Hub holds the published kinds, the claims and their sources, and the claims waiting for a place. Clusters holds one
// Cluster for each engaged workload cluster: the kinds that are followed there, and the Secrets that were written. Both
// turn events into requests. Ledger holds one entry for each claim, the creations in the hub that may be in flight, and
// the watch events of claims being reconciled. This package accesses API servers only by watching.
//
// All state belongs to one claim or one cluster and is dropped with it, and no cluster can change that of another. The
// cost of a query about one cluster depends on what that cluster has, and not on the size of the fleet. A cluster that
// reports a change of a claim under the version of another one hides it from that claim alone.
package index
