// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
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

// seriesPerCluster bounds how many Applications of a cluster have their own series, if these are enabled.
const seriesPerCluster = 500

// Metrics publishes the health of Applications in total and, if enabled, of each Application.
//
// The series of an Application are deleted when it is forgotten, those of a cluster when the cluster is. At most
// seriesPerCluster Applications of a cluster have their own series, since its owner decides how many exist. A nil
// *Metrics publishes nothing.
type Metrics struct {
	applications *prometheus.GaugeVec
	components   *prometheus.GaugeVec
	writes       *prometheus.CounterVec

	// each is nil unless series per Application are enabled.
	each *applicationSeries

	mu sync.Mutex
	// clusters has the values last published for each Application.
	clusters map[mcr.ClusterName]map[record.ApplicationKey]counted
}

// counted holds the values last published for an Application.
type counted struct {
	health            appsv1alpha1.Health
	wanted, installed int32
}

// NewMetrics registers the metrics of this package; perApplication adds series for each Application. It panics if they
// are already registered.
func NewMetrics(reg prometheus.Registerer, perApplication bool) *Metrics {
	m := &Metrics{
		applications: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_applications",
			Help:       "Applications of a workload cluster in each state, including 0 for states that none is in. Absent if the cluster has none.",
			PerCluster: true,
			Labels:     []metric.Label{healthLabel()},
			See:        "application.md",
		}),
		components: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_application_components",
			Help:       "Components that the Applications of a workload cluster name, and those of them that are installed.",
			PerCluster: true,
			Labels:     []metric.Label{{Name: "state", Values: stateWanted + " (named), " + stateInstalled + " (existing)"}},
		}),
		writes: metric.NewCounter(reg, metric.Definition{
			Name: "masthead_application_writes_total",
			Help: "Writes to a workload cluster because of its Applications. Many mean that another client there reverts them " +
				"repeatedly.",
			PerCluster: true,
			Labels: []metric.Label{{
				Name: "write", Values: writeStatus + ", " + writeOwner + ", " + writeHealthCheck + " (Pods), " + writeDefinition,
			}},
		}),
		clusters: map[mcr.ClusterName]map[record.ApplicationKey]counted{},
	}
	if perApplication {
		m.each = newApplicationSeries(reg)
	}
	return m
}

// wrote counts a write to a cluster.
func (m *Metrics) wrote(cluster mcr.ClusterName, what string) {
	if m != nil {
		m.writes.WithLabelValues(metric.ClusterValues(cluster, what)...).Inc()
	}
}

// application records the current health of an Application.
func (m *Metrics) application(cluster mcr.ClusterName, key record.ApplicationKey, s rollup.Summary) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := counted{health: knownHealth(s.Health), wanted: s.Wanted, installed: s.Installed}
	known := m.clusters[cluster]
	if known == nil {
		known = map[record.ApplicationKey]counted{}
		m.clusters[cluster] = known
		for _, h := range healthStates() {
			m.applications.WithLabelValues(metric.ClusterValues(cluster, string(h))...).Set(0)
		}
	}
	before, counted := known[key]
	if counted {
		m.add(cluster, before, -1)
	}
	known[key] = now
	m.add(cluster, now, 1)
	m.each.set(cluster, key, s.Ready, now)
}

// forget deletes the series of an Application.
func (m *Metrics) forget(cluster mcr.ClusterName, key record.ApplicationKey) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, counted := m.clusters[cluster][key]
	if !counted {
		return
	}
	m.each.forget(cluster, key)
	delete(m.clusters[cluster], key)
	if len(m.clusters[cluster]) == 0 {
		delete(m.clusters, cluster)
		m.deleteCounts(cluster)
		return
	}
	m.add(cluster, before, -1)
}

// forgetCluster deletes every series of a cluster.
func (m *Metrics) forgetCluster(cluster mcr.ClusterName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.each.forgetCluster(cluster)
	delete(m.clusters, cluster)
	m.deleteCounts(cluster)
	m.writes.DeletePartialMatch(metric.ClusterLabels(cluster))
}

func (m *Metrics) deleteCounts(cluster mcr.ClusterName) {
	labels := metric.ClusterLabels(cluster)
	m.applications.DeletePartialMatch(labels)
	m.components.DeletePartialMatch(labels)
}

func (m *Metrics) add(cluster mcr.ClusterName, c counted, sign float64) {
	m.applications.WithLabelValues(metric.ClusterValues(cluster, string(c.health))...).Add(sign)
	m.components.WithLabelValues(metric.ClusterValues(cluster, stateWanted)...).Add(sign * float64(c.wanted))
	m.components.WithLabelValues(metric.ClusterValues(cluster, stateInstalled)...).Add(sign * float64(c.installed))
}

// healthLabel is the label with the health of an Application.
func healthLabel() metric.Label {
	states := make([]string, 0, len(healthStates()))
	for _, h := range healthStates() {
		states = append(states, string(h))
	}
	return metric.Label{Name: "health", Values: strings.Join(states, ", ")}
}

// healthStates are the possible health states of an Application.
func healthStates() []appsv1alpha1.Health {
	return []appsv1alpha1.Health{
		appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing,
		appsv1alpha1.HealthUnknown, appsv1alpha1.HealthMissing, appsv1alpha1.HealthDegraded,
	}
}

// knownHealth bounds the label health: any other value becomes Unknown.
func knownHealth(health appsv1alpha1.Health) appsv1alpha1.Health {
	for _, h := range healthStates() {
		if h == health {
			return h
		}
	}
	return appsv1alpha1.HealthUnknown
}
