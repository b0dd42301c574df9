// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metricreference

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/internal/processmetrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/application"
	"github.com/masthead-dev/masthead/pkg/controllers/discovery"
	"github.com/masthead-dev/masthead/pkg/controllers/importer"
	"github.com/masthead-dev/masthead/pkg/controllers/references"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// A Group is the metrics of one part of the manager.
type Group struct {
	// Title is the group's heading in the reference.
	Title string
	// Metrics are what the group publishes.
	Metrics []metric.Definition
}

// Groups returns every metric of the manager itself, and those of libraries that our dashboards and alerts use.
func Groups() []Group {
	var groups []Group
	for _, g := range []struct {
		title    string
		register func(prometheus.Registerer)
	}{
		{"Process", func(reg prometheus.Registerer) {
			processmetrics.RegisterBuildInfo(reg)
			processmetrics.NewReady(reg)
			limits.RegisterMetrics(reg, nil)
		}},
		{"Connections", func(reg prometheus.Registerer) { connection.RegisterMetrics(reg) }},
		{"Queues", func(reg prometheus.Registerer) { multicluster.NewMetrics(reg) }},
		{"Claims", func(reg prometheus.Registerer) {
			index.RegisterClaims(reg, nil)
			downstream.New(reg)
			index.RegisterOrphans(reg, nil)
			index.RegisterMemory(reg, nil)
			hubaccess.RegisterMetrics(reg, nil)
		}},
		{"Discovery", func(reg prometheus.Registerer) { discovery.NewMetrics(reg) }},
		{"Applications", func(reg prometheus.Registerer) { application.NewMetrics(reg, nil, true) }},
		{"References", func(reg prometheus.Registerer) { references.RegisterMetrics(reg) }},
		{"Imports", importer.RegisterMetrics},
	} {
		recorder := metric.NewRecorder()
		g.register(recorder)
		groups = append(groups, Group{Title: g.title, Metrics: recorder.Definitions()})
	}
	return append(groups, Group{Title: "Libraries", Metrics: libraries()})
}
