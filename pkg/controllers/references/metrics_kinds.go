// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// registerKinds publishes the kinds that declare references: if one cannot be watched, no object reports that its
// references are not resolved. They are counted on collection.
func registerKinds(reg prometheus.Registerer, r *reconciler) {
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_references_kinds",
		Help: "Kinds of a workload cluster, or of the hub, that declare references, by the state of their watch. Objects of a kind " +
			"that is not Synced do not report that their references are not resolved.",
		PerCluster: true,
		Labels:     []metric.Label{{Name: "state", Values: "the state of the watch, or " + stateLeftOut}},
		See:        "references.md#when-nothing-happens",
	}, func(emit func(float64, ...string)) {
		all := r.workloads.All()
		if hub := r.hub.Load(); hub != nil {
			all = append(all, hub)
		}
		for _, w := range all {
			for state, n := range w.states() {
				emit(float64(n), metric.ClusterValues(w.name, state)...)
			}
		}
	})
}

// RegisterMetrics registers the metrics of this package without any data, for the reference documentation.
func RegisterMetrics(reg prometheus.Registerer) {
	NewMetrics(reg)
	registerKinds(reg, nil)
}
