// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// Metrics counts filled-in fields.
type Metrics struct {
	fields *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	return &Metrics{fields: metric.NewCounter(registerer, metric.Definition{
		Name:       "masthead_references_filled_fields_total",
		Help:       "Fields that references filled in.",
		PerCluster: true,
	})}
}

// filled counts filled-in fields.
func (m *Metrics) filled(cluster mcr.ClusterName, fields int) {
	m.fields.WithLabelValues(metric.ClusterValues(cluster)...).Add(float64(fields))
}

// forgetCluster deletes the series of a cluster.
func (m *Metrics) forgetCluster(cluster mcr.ClusterName) {
	m.fields.DeletePartialMatch(metric.ClusterLabels(cluster))
}

// registerGauges publishes the objects with references, and the kinds that declare them: if one cannot be watched, no
// object reports that its references are not resolved. They are counted on collection.
func registerGauges(reg prometheus.Registerer, r *reconciler) {
	each := func(counts func(*workload) map[string]int) func(func(float64, ...string)) {
		return func(emit func(float64, ...string)) {
			all := r.workloads.All()
			if hub := r.hub.Load(); hub != nil {
				all = append(all, hub)
			}
			for _, w := range all {
				for value, n := range counts(w) {
					emit(float64(n), metric.ClusterValues(w.name, value)...)
				}
			}
		}
	}
	metric.RegisterGauges(reg, metric.Definition{
		Name:       "masthead_references_objects",
		Help:       "Objects with references, of a workload cluster or of the hub, by the reason of their condition ReferencesResolved.",
		PerCluster: true,
		Labels:     []metric.Label{{Name: "reason", Values: "the reason of the condition"}},
		See:        "references.md",
	}, each((*workload).reasons))
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_references_kinds",
		Help: "Kinds of a workload cluster, or of the hub, that declare references, by the state of their watch. Objects of a kind " +
			"that is not Synced do not report that their references are not resolved.",
		PerCluster: true,
		Labels:     []metric.Label{{Name: "state", Values: "the state of the watch, or " + stateLeftOut}},
		See:        "references.md#when-nothing-happens",
	}, each((*workload).states))
}

// RegisterMetrics registers the metrics of this package without any data, for the reference documentation.
func RegisterMetrics(reg prometheus.Registerer) {
	registerGauges(reg, nil)
	NewMetrics(reg)
}
