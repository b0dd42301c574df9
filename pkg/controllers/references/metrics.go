// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
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
		objects: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_references_objects",
			Help: "How many objects of a cluster have references, by the reason of their condition ReferencesResolved.",
		}, []string{"cluster", "reason"}),
		fields: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_references_filled_fields_total",
			Help: "How many fields were filled in by references, by cluster.",
		}, []string{"cluster"}),
		reasons: map[mcr.ClusterName]map[objectKey]string{},
	}
	registerer.MustRegister(m.objects, m.fields)
	return m
}

// label is the value of the label cluster.
func label(name mcr.ClusterName) string {
	if name == hubName {
		return "hub"
	}
	return name.String()
}

// object notes the reason of an object.
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
	m.reasons[req.ClusterName][req.key()] = reason
	m.objects.WithLabelValues(label(req.ClusterName), reason).Inc()
}

// leave takes an object out of what is counted. The caller holds mu.
func (m *Metrics) leave(req Request) {
	if before := m.reasons[req.ClusterName][req.key()]; before != "" {
		m.objects.WithLabelValues(label(req.ClusterName), before).Dec()
		delete(m.reasons[req.ClusterName], req.key())
	}
}

// forget notes that an object is gone, or has no references.
func (m *Metrics) forget(req Request) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leave(req)
}

// filled notes that fields were filled in.
func (m *Metrics) filled(cluster mcr.ClusterName, fields int) {
	if m != nil {
		m.fields.WithLabelValues(label(cluster)).Add(float64(fields))
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
	labels := prometheus.Labels{"cluster": label(cluster)}
	m.objects.DeletePartialMatch(labels)
	m.fields.DeletePartialMatch(labels)
}

// stateLeftOut is the state of kinds that are more than are looked after. The other states are those of kindwatch.
const stateLeftOut = "LeftOut"

// kinds publishes masthead_references_kinds: of a kind that cannot be watched, no object says that its references are
// not resolved. They are counted when they are asked for.
type kinds struct {
	r    *reconciler
	desc *prometheus.Desc
}

func newKinds(r *reconciler) prometheus.Collector {
	return &kinds{r: r, desc: prometheus.NewDesc("masthead_references_kinds",
		"How many kinds of a cluster declare references, by the state of their watch.", []string{"cluster", "state"}, nil)}
}

// Describe implements prometheus.Collector.
func (k *kinds) Describe(out chan<- *prometheus.Desc) { out <- k.desc }

// Collect implements prometheus.Collector.
func (k *kinds) Collect(out chan<- prometheus.Metric) {
	all := k.r.workloads.All()
	if hub := k.r.hub.Load(); hub != nil {
		all = append(all, hub)
	}
	for _, w := range all {
		for state, n := range w.states() {
			out <- prometheus.MustNewConstMetric(k.desc, prometheus.GaugeValue, float64(n), label(w.name), state)
		}
	}
}
