// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// Metrics of the controller. A nil Metrics publishes nothing.
type Metrics struct {
	objects *prometheus.GaugeVec
	fields  *prometheus.CounterVec

	mu      sync.Mutex
	reasons map[mcr.ClusterName]map[objectKey]string
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		objects: metric.NewGauge(registerer, metric.Definition{
			Name:       "masthead_references_objects",
			Help:       "Objects with references, of a workload cluster or of the hub, by the reason of their condition ReferencesResolved.",
			PerCluster: true,
			Labels:     []metric.Label{{Name: "reason", Values: "the reason of the condition"}},
			See:        "references.md",
		}),
		fields: metric.NewCounter(registerer, metric.Definition{
			Name:       "masthead_references_filled_fields_total",
			Help:       "Fields that references filled in.",
			PerCluster: true,
		}),
		reasons: map[mcr.ClusterName]map[objectKey]string{},
	}
	return m
}

// object records the reason of an object.
func (m *Metrics) object(req Request, reason string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(req)
	if m.reasons[req.ClusterName] == nil {
		m.reasons[req.ClusterName] = map[objectKey]string{}
	}
	m.reasons[req.ClusterName][keyOfRequest(req)] = reason
	m.objects.WithLabelValues(metric.ClusterValues(req.ClusterName, reason)...).Inc()
}

// leave removes an object from the counts. The caller holds mu.
func (m *Metrics) leave(req Request) {
	if before := m.reasons[req.ClusterName][keyOfRequest(req)]; before != "" {
		m.objects.WithLabelValues(metric.ClusterValues(req.ClusterName, before)...).Dec()
		delete(m.reasons[req.ClusterName], keyOfRequest(req))
	}
}

// forget records that an object is gone, or has no references.
func (m *Metrics) forget(req Request) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(req)
}

// filled counts filled-in fields.
func (m *Metrics) filled(cluster mcr.ClusterName, fields int) {
	if m != nil {
		m.fields.WithLabelValues(metric.ClusterValues(cluster)...).Add(float64(fields))
	}
}

// forgetCluster deletes the series of a cluster.
func (m *Metrics) forgetCluster(cluster mcr.ClusterName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reasons, cluster)
	labels := metric.ClusterLabels(cluster)
	m.objects.DeletePartialMatch(labels)
	m.fields.DeletePartialMatch(labels)
}
