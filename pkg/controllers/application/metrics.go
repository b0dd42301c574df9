// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// Kinds of writes counted by masthead_application_writes_total.
const (
	writeStatus      = "status"
	writeOwner       = "owner-reference"
	writeHealthCheck = "health-check"
	writeDefinition  = "definition"
)

// Values of the label state of masthead_application_components.
const (
	stateWanted    = "wanted"
	stateInstalled = "installed"
)

// seriesPerCluster bounds how many Applications of a cluster have their own series, if these are enabled: its owner
// decides how many exist.
const seriesPerCluster = 500

// Metrics counts writes.
type Metrics struct {
	writes *prometheus.CounterVec
}

// NewMetrics registers the metrics of this package: the health of the collected Applications in total, and writes.
// perApplication adds series for each Application. It panics if they are already registered.
func NewMetrics(reg prometheus.Registerer, c *rollup.Collector, perApplication bool) *Metrics {
	registerTotals(reg, c)
	m := &Metrics{
		writes: metric.NewCounter(reg, metric.Definition{
			Name: "masthead_application_writes_total",
			Help: "Writes to a workload cluster because of its Applications. Many mean that another client there reverts them " +
				"repeatedly.",
			PerCluster: true,
			Labels: []metric.Label{{
				Name: "write", Values: writeStatus + ", " + writeOwner + ", " + writeHealthCheck + " (Pods), " + writeDefinition,
			}},
		}),
	}
	if perApplication {
		registerEach(reg, c)
	}
	return m
}

// wrote counts a write to a cluster.
func (m *Metrics) wrote(cluster mcr.ClusterName, what string) {
	m.writes.WithLabelValues(metric.ClusterValues(cluster, what)...).Inc()
}

// forgetCluster deletes the series of a cluster.
func (m *Metrics) forgetCluster(cluster mcr.ClusterName) {
	m.writes.DeletePartialMatch(metric.ClusterLabels(cluster))
}

// registerTotals publishes the totals of each cluster.
func registerTotals(reg prometheus.Registerer, c *rollup.Collector) {
	metric.RegisterGauges(reg, metric.Definition{
		Name:       "masthead_applications",
		Help:       "Applications of a workload cluster in each state, including 0 for states that none is in. Absent if the cluster has none.",
		PerCluster: true,
		Labels:     []metric.Label{healthLabel()},
		See:        "application.md",
	}, func(emit func(float64, ...string)) {
		c.Each(func(cluster mcr.ClusterName, applications rollup.Applications) {
			n := applications.Totals().Applications
			for health, n := range map[appsv1alpha1.Health]int32{
				appsv1alpha1.HealthHealthy: n.Healthy, appsv1alpha1.HealthSuspended: n.Suspended,
				appsv1alpha1.HealthProgressing: n.Progressing, appsv1alpha1.HealthUnknown: n.Unknown,
				appsv1alpha1.HealthMissing: n.Missing, appsv1alpha1.HealthDegraded: n.Degraded,
			} {
				emit(float64(n), metric.ClusterValues(cluster, string(health))...)
			}
		})
	})
	metric.RegisterGauges(reg, metric.Definition{
		Name:       "masthead_application_components",
		Help:       "Components that the Applications of a workload cluster name, and those of them that are installed.",
		PerCluster: true,
		Labels:     []metric.Label{{Name: "state", Values: stateWanted + " (named), " + stateInstalled + " (existing)"}},
	}, func(emit func(float64, ...string)) {
		c.Each(func(cluster mcr.ClusterName, applications rollup.Applications) {
			n := applications.Totals().Components
			emit(float64(n.Wanted), metric.ClusterValues(cluster, stateWanted)...)
			emit(float64(n.Installed), metric.ClusterValues(cluster, stateInstalled)...)
		})
	})
}

// registerEach publishes the series of individual Applications.
func registerEach(reg prometheus.Registerer, c *rollup.Collector) {
	const only = " Only with --application-metrics=PerApplication."
	each := func(name, help string, values func(a rollup.Application, emit func(float64, ...string)), labels ...metric.Label) {
		metric.RegisterGauges(reg, metric.Definition{
			Name: name, Help: help + only, PerCluster: true,
			// Not "namespace" and "name": the scraped target's label "namespace" would hide one of the metric.
			Labels: append([]metric.Label{
				{Name: "application_namespace", Values: "the namespace of the Application"},
				{Name: "application_name", Values: "the name of the Application"},
			}, labels...),
		}, func(emit func(float64, ...string)) {
			c.Each(func(cluster mcr.ClusterName, applications rollup.Applications) {
				for _, a := range applications.First(seriesPerCluster) {
					values(a, func(value float64, more ...string) {
						emit(value, append(metric.ClusterValues(cluster, a.Namespace, a.Name), more...)...)
					})
				}
			})
		})
	}
	each("masthead_application_health", "1 for the current state of an Application, no series for the others.",
		func(a rollup.Application, emit func(float64, ...string)) {
			if bounds.HealthRank(a.Health) < 0 {
				a.Health = appsv1alpha1.HealthUnknown // It bounds the label.
			}
			emit(1, string(a.Health))
		}, healthLabel())
	each("masthead_application_ready", "1 if the health check of an Application is ready, 0 if not. Absent if that is unknown.",
		func(a rollup.Application, emit func(float64, ...string)) {
			switch a.Ready {
			case corev1.ConditionTrue:
				emit(1)
			case corev1.ConditionFalse:
				emit(0)
			case corev1.ConditionUnknown:
			}
		})
	each("masthead_application_components_wanted", "Components that an Application names.",
		func(a rollup.Application, emit func(float64, ...string)) { emit(float64(a.Wanted)) })
	each("masthead_application_components_installed", "Components of an Application that are installed.",
		func(a rollup.Application, emit func(float64, ...string)) { emit(float64(a.Installed)) })
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_applications_without_series",
		Help: fmt.Sprintf("Applications that have no series of their own, because %d others of their cluster come first by name.%s",
			seriesPerCluster, only),
		PerCluster: true,
	}, func(emit func(float64, ...string)) {
		c.Each(func(cluster mcr.ClusterName, applications rollup.Applications) {
			if n := len(applications) - seriesPerCluster; n > 0 {
				emit(float64(n), metric.ClusterValues(cluster)...)
			}
		})
	})
}

// healthLabel is the label with the health of an Application.
func healthLabel() metric.Label {
	var states []string
	for _, h := range bounds.HealthStates() {
		states = append(states, string(h))
	}
	return metric.Label{Name: "health", Values: strings.Join(states, ", ")}
}
