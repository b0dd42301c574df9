// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// kinds publishes masthead_references_kinds: if a kind cannot be watched, no object reports that its references are not
// resolved. They are counted on collection.
type kinds struct {
	r    *reconciler
	desc *prometheus.Desc
}

func registerKinds(reg prometheus.Registerer, r *reconciler) {
	reg.MustRegister(&kinds{r: r, desc: metric.NewGaugeDesc(reg, metric.Definition{
		Name: "masthead_references_kinds",
		Help: "Kinds of a workload cluster, or of the hub, that declare references, by the state of their watch. Objects of a kind " +
			"that is not Synced do not report that their references are not resolved.",
		PerCluster: true,
		Labels:     []metric.Label{{Name: "state", Values: "the state of the watch, or " + stateLeftOut}},
		See:        "references.md#when-nothing-happens",
	})})
}

// RegisterMetrics registers the metrics of this package without any data, for the reference documentation.
func RegisterMetrics(reg prometheus.Registerer) {
	NewMetrics(reg)
	registerKinds(reg, nil)
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
			out <- prometheus.MustNewConstMetric(k.desc, prometheus.GaugeValue, float64(n), metric.ClusterValues(w.name, state)...)
		}
	}
}
