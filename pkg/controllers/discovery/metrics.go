// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// What is counted by masthead_discovery_writes_total.
const (
	writeCreate = "create"
	writeUpdate = "update"
	writeDelete = "delete"
)

// Metrics publishes what discovery does:
//
//   - masthead_discovery_objects{cluster,crd}: copies of the hub's objects that are in the cluster as they are in the
//     hub;
//   - masthead_discovery_served{cluster,crd}: 1 if the cluster shows everything of a kind that it shall, 0 if something
//     was refused;
//   - masthead_discovery_protected{cluster}: 1 if a policy protects what Masthead put into the cluster, 0 if none can;
//   - masthead_discovery_writes_total{cluster,write}: writes to the cluster.
//
// Series of a cluster are deleted when it is disengaged. A nil *Metrics publishes nothing.
type Metrics struct {
	objects   *prometheus.GaugeVec
	served    *prometheus.GaugeVec
	protected *prometheus.GaugeVec
	writes    *prometheus.CounterVec
}

// NewMetrics registers the metrics of this package. It panics if they are registered there already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_discovery_objects",
			Help: "Read-only copies of the hub's objects in a workload cluster, by cluster and crd.",
		}, []string{"cluster", "crd"}),
		served: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_discovery_served",
			Help: "Whether a workload cluster shows everything that it shall of a kind of the hub, by cluster and crd.",
		}, []string{"cluster", "crd"}),
		protected: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_discovery_protected",
			Help: "Whether a policy in a workload cluster protects what Masthead put there, by cluster.",
		}, []string{"cluster"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_discovery_writes_total",
			Help: "Writes of definitions, copies and policies to a workload cluster, by cluster and what was done.",
		}, []string{"cluster", "write"}),
	}
	reg.MustRegister(m.objects, m.served, m.protected, m.writes)
	return m
}

func (m *Metrics) wrote(cluster mcr.ClusterName, what string) {
	if m != nil {
		m.writes.WithLabelValues(cluster.String(), what).Inc()
	}
}

func (m *Metrics) kind(cluster mcr.ClusterName, crd string, objects int, served bool) {
	if m == nil {
		return
	}
	m.objects.WithLabelValues(cluster.String(), crd).Set(float64(objects))
	m.served.WithLabelValues(cluster.String(), crd).Set(gauge(served))
}

func (m *Metrics) forgetKind(cluster mcr.ClusterName, crd string) {
	if m != nil {
		m.objects.DeleteLabelValues(cluster.String(), crd)
		m.served.DeleteLabelValues(cluster.String(), crd)
	}
}

func (m *Metrics) protection(cluster mcr.ClusterName, protected bool) {
	if m != nil {
		m.protected.WithLabelValues(cluster.String()).Set(gauge(protected))
	}
}

func (m *Metrics) forgetProtection(cluster mcr.ClusterName) {
	if m != nil {
		m.protected.DeleteLabelValues(cluster.String())
	}
}

// forget deletes every series of a cluster.
func (m *Metrics) forget(cluster mcr.ClusterName) {
	if m == nil {
		return
	}
	labels := prometheus.Labels{"cluster": cluster.String()}
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
