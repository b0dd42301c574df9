// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts in config/prometheus and the dashboards in config/grafana: with promtool, and
// with the parser of Prometheus, whose metrics and labels are held against docs/reference/metrics.md.
//
// It is a module of its own, so that the dependencies of Prometheus are none of the manager's. It guarantees nothing to
// the manager, and the owner of a workload cluster gains nothing through it.
package monitoring
