// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"github.com/prometheus/client_golang/prometheus"
)

// orphans publishes masthead_agent_orphans{cluster}: objects of the hub that name a connected cluster as their source, of kinds that
// are followed there, and for which there is no claim in it.
//
// There are two ways to such an object. A cluster replaced a lost one and does not have its claims yet: then they are waited for.
// Or a claim was deleted in the instant in which it got its finalizer, and the manager was killed right then: nobody saw
// the claim go. The absence of a claim alone is no proof of either, so nothing is deleted because of it (see vanished.go). Somebody
// has to know, and decide.
//
// They are counted when they are asked for, so that the agent's own work costs nothing more. The hub's lock is held for as long as it
// takes to copy the origins of one cluster.
type orphans struct {
	hub         *Hub
	description *prometheus.Desc
}

// NewOrphans returns a collector of the orphans in a hub.
func NewOrphans(h *Hub) *orphans {
	return &orphans{hub: h, description: prometheus.NewDesc("masthead_agent_orphans",
		"Objects of the hub that name a connected cluster as their source and have no claim in it, by cluster.", []string{"cluster"}, nil)}
}

// Describe implements prometheus.Collector.
func (o *orphans) Describe(out chan<- *prometheus.Desc) { out <- o.description }

// Collect implements prometheus.Collector.
func (o *orphans) Collect(out chan<- prometheus.Metric) {
	for _, w := range o.hub.Clusters.All() {
		cluster, enrolled := o.hub.Fleet.Lookup(w.Name)
		if !enrolled || cluster.EffectiveIdentifier() == "" {
			continue
		}
		n := 0
		for _, from := range o.hub.originsIn(cluster.EffectiveIdentifier()) {
			if w.lacks(from) {
				n++
			}
		}
		out <- prometheus.MustNewConstMetric(o.description, prometheus.GaugeValue, float64(n), w.Name.String())
	}
}
