// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package processmetrics

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/internal/version"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// RegisterBuildInfo adds the metric masthead_build_info: always 1, with the version as a label, so that dashboards can
// show which versions run and when one was rolled out.
func RegisterBuildInfo(to prometheus.Registerer) {
	metric.NewGauge(to, metric.Definition{
		Name: "masthead_build_info",
		Help: "Always 1. The version of the manager and of the Go that built it.",
		Labels: []metric.Label{
			{Name: "version", Values: "the version of the manager"}, {Name: "go_version", Values: "the version of Go"},
		},
	}).WithLabelValues(version.Version, runtime.Version()).Set(1)
}
