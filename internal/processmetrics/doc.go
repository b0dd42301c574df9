// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package processmetrics has the metrics of the manager's process. They are not in cmd/manager so that the reference of
// all metrics can be generated from them.
//
// It guarantees that each metric is registered once, and panics otherwise. What does the owner of one workload cluster
// gain from the hub or another cluster through this? Nothing: none of it is about a cluster.
package processmetrics
