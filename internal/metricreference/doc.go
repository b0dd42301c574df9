// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricreference knows every metric that the manager publishes, and writes docs/reference/metrics.md.
//
// It guarantees that what it lists is what the code makes: it has each package make its metrics for a metric.Recorder.
// The tests of the alerts and of the dashboards ask it which metrics and labels there are. What does the owner of one
// workload cluster gain from the hub or another cluster through this? Nothing: it does not run in the manager.
package metricreference
