// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// Metrics publishes the metrics of discovery. A cluster's series are deleted when it is disengaged.
type Metrics struct {
	objects   *prometheus.GaugeVec
	served    *prometheus.GaugeVec
	protected *prometheus.GaugeVec
	writes    *prometheus.CounterVec
}

// NewMetrics registers the metrics of this package. It panics if they are already registered.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	crd := []metric.Label{{Name: "crd", Values: "the name of the CustomResourceDefinition"}}
	return &Metrics{
		objects: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_discovery_objects",
			Help:       "Read-only copies of the hub's objects in a workload cluster that match the hub.",
			PerCluster: true,
			Labels:     crd,
			See:        "discovery.md",
		}),
		served: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_discovery_served",
			Help:       "1 if a workload cluster shows everything that it should of a kind of the hub, 0 if something was refused.",
			PerCluster: true,
			Labels:     crd,
			See:        "discovery.md#reasons",
		}),
		protected: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_discovery_protected",
			Help:       "1 if a policy protects what Masthead wrote to a workload cluster, 0 if there cannot be one.",
			PerCluster: true,
		}),
		writes: metric.NewCounter(reg, metric.Definition{
			Name: "masthead_discovery_writes_total",
			Help: "Writes of definitions, copies and policies to a workload cluster. Many mean that another client there undoes " +
				"them again and again.",
			PerCluster: true,
			Labels:     []metric.Label{{Name: "write", Values: install.Create + ", " + install.Update + ", " + install.Delete}},
		}),
	}
}

func (m *Metrics) wrote(cluster mcr.ClusterName, what string) {
	m.writes.WithLabelValues(metric.ClusterValues(cluster, what)...).Inc()
}

func (m *Metrics) kind(cluster mcr.ClusterName, crd string, objects int, served bool) {
	m.objects.WithLabelValues(metric.ClusterValues(cluster, crd)...).Set(float64(objects))
	m.served.WithLabelValues(metric.ClusterValues(cluster, crd)...).Set(gauge(served))
}

func (m *Metrics) forgetKind(cluster mcr.ClusterName, crd string) {
	m.objects.DeleteLabelValues(metric.ClusterValues(cluster, crd)...)
	m.served.DeleteLabelValues(metric.ClusterValues(cluster, crd)...)
}

func (m *Metrics) protection(cluster mcr.ClusterName, protected bool) {
	m.protected.WithLabelValues(metric.ClusterValues(cluster)...).Set(gauge(protected))
}

func (m *Metrics) forgetProtection(cluster mcr.ClusterName) {
	m.protected.DeleteLabelValues(metric.ClusterValues(cluster)...)
}

// forget deletes every series of a cluster.
func (m *Metrics) forget(cluster mcr.ClusterName) {
	labels := metric.ClusterLabels(cluster)
	m.objects.DeletePartialMatch(labels)
	m.served.DeletePartialMatch(labels)
	m.protected.DeletePartialMatch(labels)
	m.writes.DeletePartialMatch(labels)
}

func gauge(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
