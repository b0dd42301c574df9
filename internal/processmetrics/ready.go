// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package processmetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// NewReady returns the metric masthead_ready, which is 0.
func NewReady(to prometheus.Registerer) prometheus.Gauge {
	return metric.NewGauge(to, metric.Definition{
		Name: "masthead_ready",
		Help: "1 if the manager is ready, 0 while it waits for what is missing in the hub, or for its caches. /readyz reports what is " +
			"missing. A replica that waits for the lease is ready.",
	}).WithLabelValues()
}
