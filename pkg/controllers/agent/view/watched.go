// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// The hub's watcher follows the published claim kinds, and unpublished ones of which a workload cluster may still have
// claims. The wants of each cluster are kept: the cost of a change in one cluster depends on what that cluster has, and
// not on the size of the fleet.

// hubOffers owns the kinds that the hub itself publishes. No cluster has this name.
const hubOffers mcr.ClusterName = ""

// refreshOffered makes the hub's watcher follow what is published now.
func (h *Hub) refreshOffered() {
	// Reading and applying are one step: of two concurrent refreshes, the one that read later must win.
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	h.watchComposed()
	var kinds []kindwatch.Kind
	for _, p := range h.publications() {
		kinds = append(kinds, p.Kind)
	}
	h.Want(hubOffers, kinds...)
}

// RefreshFollowed makes the hub's watcher follow what an instance follows now, if the instance is active. Reading and
// applying are one step here, too.
func (h *Hub) RefreshFollowed(w *Cluster) {
	h.Clusters.IfCurrent(w.Name, w, func() { h.Want(w.Name, w.HubKinds()...) })
}

// Want sets the kinds that a cluster, or the hub itself, needs. The hub's watcher follows the union of all wants.
func (h *Hub) Want(name mcr.ClusterName, kinds ...kindwatch.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, before := sets.New(kinds...), h.wants[name]
	news, gone := false, sets.New[kindwatch.Kind]()
	for kind := range now.Difference(before) {
		news = news || len(h.watched[kind]) == 0
		h.watched.Insert(kind, name)
	}
	for kind := range before.Difference(now) {
		h.watched.Delete(kind, name)
		if len(h.watched[kind]) == 0 {
			gone.Insert(kind)
		}
	}
	h.wants[name] = now
	if len(now) == 0 {
		delete(h.wants, name)
	}
	if !news && len(gone) == 0 {
		return
	}
	// The watcher does not call its handler from Set.
	h.Watcher.Set(OwnerClaims, slices.Collect(maps.Keys(h.watched))...)
	if len(gone) > 0 {
		h.origins.forgetKinds(gone)
		h.left.forgetKinds(gone)
		h.newborns.forgetKinds(gone)
		h.deleted.forgetKinds(gone)
		h.charges.releaseKinds(gone)
	}
}

// WatchedKinds returns the claim kinds followed in the hub.
func (h *Hub) WatchedKinds() []kindwatch.Kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.watched))
}
