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

// The hub's watcher follows the claim kinds that are published, and those that are not any more but of which a workload
// cluster may still have claims. Each cluster's part is kept: a change in one cluster costs what that cluster has,
// whatever the size of the fleet.

// hubOffers is who wants the kinds that the hub itself publishes. No cluster has this name.
const hubOffers mcr.ClusterName = ""

// refreshOffered has the hub's watcher follow what is published now.
func (h *Hub) refreshOffered() {
	// What is found out and what follows from it are one step: of two refreshes at once, the one that looked later has to
	// win.
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	h.watchComposed()
	var kinds []kindwatch.Kind
	for _, p := range h.publications() {
		kinds = append(kinds, p.Kind)
	}
	h.Want(hubOffers, kinds...)
}

// RefreshFollowed has the hub's watcher follow what an instance of a cluster follows now, if it is the one that counts.
// To look and to want are one step here, too.
func (h *Hub) RefreshFollowed(w *Cluster) {
	h.Clusters.IfCurrent(w.Name, w, func() { h.Want(w.Name, w.HubKinds()...) })
}

// Want has the hub's watcher follow what one cluster, or the hub itself, wants now, and what the others do.
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
		h.newborns.forgetKinds(gone)
	}
}

// WatchedKinds are the claim kinds that are followed in the hub.
func (h *Hub) WatchedKinds() []kindwatch.Kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.watched))
}
