// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metricreference

import (
	"fmt"

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
func Groups() ([]Group, error) {
	var groups []Group
	for _, g := range []struct {
		title    string
		register func(prometheus.Registerer) error
	}{
		{"Process", func(reg prometheus.Registerer) error {
			processmetrics.RegisterBuildInfo(reg)
			processmetrics.NewReady(reg)
			return limits.RegisterMetrics(reg, nil)
		}},
		{"Connections", func(reg prometheus.Registerer) error { connection.RegisterMetrics(reg); return nil }},
		{"Queues", func(reg prometheus.Registerer) error { multicluster.NewMetrics(reg); return nil }},
		{"Claims", func(reg prometheus.Registerer) error {
			index.RegisterClaims(reg, nil)
			downstream.New(reg)
			index.RegisterOrphans(reg, nil)
			index.RegisterMemory(reg, nil)
			hubaccess.RegisterMetrics(reg, nil)
			return nil
		}},
		{"Discovery", func(reg prometheus.Registerer) error { discovery.NewMetrics(reg); return nil }},
		{"Applications", func(reg prometheus.Registerer) error { application.NewMetrics(reg, true); return nil }},
		{"References", func(reg prometheus.Registerer) error { references.RegisterMetrics(reg); return nil }},
		{"Imports", importer.RegisterMetrics},
	} {
		recorder := metric.NewRecorder()
		if err := g.register(recorder); err != nil {
			return nil, fmt.Errorf("cannot create the metrics of the group %q: %w", g.title, err)
		}
		groups = append(groups, Group{Title: g.title, Metrics: recorder.Definitions()})
	}
	return append(groups, Group{Title: "Libraries", Metrics: libraries()}), nil
}
