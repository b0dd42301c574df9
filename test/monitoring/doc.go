// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring runs a Prometheus as a process that scrapes managers of package harness, with the rules in
// config/prometheus, and reads from the dashboards in config/grafana the queries that Grafana would send to it.
//
// The owner of a workload cluster gains nothing through it: it is not part of the product.
package monitoring
