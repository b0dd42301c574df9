// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view is what the agent knows of the hub and of the engaged workload clusters, from watches alone.
//
// Hub has the published kinds, the claims and their sources, and who waits for a place. Clusters has one Cluster for
// each engaged workload cluster: the kinds that are followed there, and the Secrets that were written. Both turn events
// into requests. Nothing here reads or writes an API server but by watching.
//
// What is kept about a cluster is bounded by what the cluster has, and goes with it: whoever asks about one cluster
// pays for that cluster, whatever the size of the fleet.
package view
