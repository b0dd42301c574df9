// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics has the metrics of the agent: claims by the reason of their condition, writes, definitions, and how
// long claims and their status are under way.
//
// Each series bears the name of a workload cluster and goes when the cluster is disengaged. No label has a value that
// the owner of a workload cluster chooses: reasons are Masthead's own, and of a claim's words nothing is counted.
package metrics
