// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metricreference knows every metric that the manager publishes, and writes docs/reference/metrics.md.
//
// It guarantees that the list matches the code: it has each package register its metrics with a metric.Recorder. The
// tests of the alerts and the dashboards use it to look up metrics and labels. What does the owner of one workload
// cluster gain from the hub or another cluster through this? Nothing: it does not run in the manager.
package metricreference
