// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics has the metrics of the agent: claims by the reason of their condition, writes, definitions, and the
// latency of propagating claims and their status.
//
// Each series has the name of a workload cluster and is deleted when the cluster is disengaged. The owner of a workload
// cluster cannot choose any label value: reasons are Masthead's own, and no text of a claim is used.
package metrics
