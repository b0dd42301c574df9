// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts in config/prometheus and the dashboards in config/grafana: with promtool, and
// with the parser of Prometheus. The metrics and labels that it finds are compared with docs/reference/metrics.md.
//
// It is a separate module, so that the dependencies of Prometheus are not dependencies of the manager. It guarantees
// nothing to the manager, and the owner of a workload cluster gains nothing through it.
package monitoring
