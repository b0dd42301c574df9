// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// orphans publishes masthead_agent_orphans: objects of the hub that name a connected cluster as their source, of kinds
// followed there, without a claim in it.
//
// Orphans arise in two ways. A cluster was replaced or restored, and does not have its claims yet: then they are
// awaited. Or a claim went without Masthead: its finalizer was removed by force, or it was deleted just as it got the
// finalizer, and no manager saw that. A missing claim alone proves neither, so nothing is deleted because of it (see
// docs/claims.md). A person has to decide.
//
// It also publishes masthead_agent_strays: objects of the hub that name the source of a claim, and are not the claim's.
// Any object of the hub can name any source, by accident or on purpose. A stray has no effect on the claim, but is
// reported.
//
// Both are counted on scrape, so that reconciling costs nothing more. The hub's lock is held only while the origins of
// one cluster are copied.
type orphans struct {
	hub             *Hub
	orphans, strays *prometheus.Desc
}

// RegisterOrphans registers a collector of orphans and strays in a hub. It panics if one is registered already.
func RegisterOrphans(reg prometheus.Registerer, h *Hub) {
	metric.Register(reg, &orphans{
		hub: h,
		orphans: metric.NewGaugeDesc(reg, metric.Definition{
			Name: "masthead_agent_orphans",
			Help: "Objects of the hub that name a connected cluster as their source and have no claim in it: its claims are not " +
				"restored yet, a claim's finalizer was removed by force, or a claim was deleted at the moment when it got its " +
				"finalizer and no manager saw it. Nothing is deleted because a claim is missing.",
			PerCluster: true,
		}),
		strays: metric.NewGaugeDesc(reg, metric.Definition{
			Name: "masthead_agent_strays",
			Help: "Objects of the hub that name the source of a claim of a connected cluster and are not the claim's, such as a copy " +
				"that a restore created in another namespace. They are ignored: the claim is still synchronised, and deleting it does " +
				"not delete them. Find out who created them.",
			PerCluster: true,
		}),
	})
}

// Describe implements prometheus.Collector.
func (o *orphans) Describe(out chan<- *prometheus.Desc) { out <- o.orphans; out <- o.strays }

// Collect implements prometheus.Collector.
func (o *orphans) Collect(out chan<- prometheus.Metric) {
	for _, w := range o.hub.Clusters.All() {
		cluster, enrolled := o.hub.Fleet.Lookup(w.Name)
		if !enrolled || cluster.EffectiveIdentifier() == "" {
			continue
		}
		orphans, strays := o.count(w, cluster.EffectiveIdentifier())
		for description, n := range map[*prometheus.Desc]int{o.orphans: orphans, o.strays: strays} {
			out <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(n), metric.ClusterValues(w.Name)...)
		}
	}
}

func (o *orphans) count(w *Cluster, identifier string) (orphans, strays int) {
	for _, from := range o.hub.originsIn(identifier) {
		switch claim, known := w.getClaim(from, w.Watcher.Metadata); {
		case !known:
		case claim == nil && len(o.hub.Places(from)) == 0:
			// The hub answered what the watch never reported, because it had changed meanwhile.
		case claim == nil:
			orphans++
		default:
			for _, place := range o.hub.Places(from) {
				obj, err := o.hub.Metadata(place)
				if err != nil || recordsPlace(claim, obj) {
					continue // As most do. The rest depends on more than the claim's metadata.
				}
				if whole, _ := w.getClaim(from, w.Watcher.Get); whole != nil && isStray(obj, whole) {
					strays++
				}
			}
		}
	}
	return orphans, strays
}

// isStray reports whether an object that names a claim's source is not the claim's. A claim that records no place may
// soon take over what is at its target.
func isStray(obj, claim *unstructured.Unstructured) bool {
	_, recorded := ownership.GetRecord(claim)
	return recorded && !recordsPlace(claim, obj) && !ownership.Belongs(obj, claim)
}

// recordsPlace reports whether a claim records the place of an object.
func recordsPlace(claim, obj *unstructured.Unstructured) bool {
	was, recorded := ownership.GetRecord(claim)
	return recorded && was.Namespace == obj.GetNamespace()
}
