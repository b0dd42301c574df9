// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// The hub's watcher follows the published claim kinds, and unpublished ones of which a workload cluster may still have
// claims. The wants of each cluster are kept: the cost of a change in one cluster depends on what that cluster has, and
// not on the size of the fleet.

// hubOffers owns the kinds that the hub itself publishes. No cluster has this name.
const hubOffers mcr.ClusterName = ""

// refreshOffered makes the hub's watcher follow what is published now. The caller holds refreshing.
func (h *Hub) refreshOffered() {
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

// Want sets the kinds that a cluster, or the hub itself, needs. The hub's watcher follows the union of all wants, each
// in the hub's version.
func (h *Hub) Want(name mcr.ClusterName, kinds ...kindwatch.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now, before := sets.New(kinds...), h.wants[name]
	for kind := range now.Difference(before) {
		h.watched.Insert(kind, name)
	}
	for kind := range before.Difference(now) {
		h.watched.Delete(kind, name)
	}
	h.wants[name] = now
	if len(now) == 0 {
		delete(h.wants, name)
	}
	h.follow()
}

// follow makes the hub's watcher follow what is wanted. The caller holds mu.
func (h *Hub) follow() {
	now, gone := map[schema.GroupResource]kindwatch.Kind{}, sets.New[schema.GroupResource]()
	for kind := range h.watched {
		now[kind.GroupResource()] = h.hubKind(kind)
	}
	for resource, kind := range h.following {
		if now[resource] != kind {
			gone.Insert(resource)
		}
	}
	if len(gone) == 0 && len(now) == len(h.following) {
		return
	}
	h.following = now
	// The watcher does not call its handler from Set.
	h.Watcher.Set(OwnerClaims, slices.Collect(maps.Values(now))...)
	if len(gone) > 0 {
		h.origins.forgetKinds(gone)
		h.left.forgetKinds(gone)
		h.deleted.forgetKinds(gone)
		h.Kept.releaseOthers(now)
	}
}

// SetServed records the versions of a kind that the hub's definition serves.
func (h *Hub) SetServed(kind kindwatch.Kind, versions []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.served[kind.GroupResource()] = servedVersions{kind: kind, versions: versions}
	h.follow()
}

// HubKind returns a claim kind in the version in which the hub is read: the published one, or another one if the hub
// does not serve that. A workload cluster's version can differ, while its definition cannot follow the hub's. Then
// its claims can still be found and deleted in the hub, but an object of another version is never written or shown.
func (h *Hub) HubKind(kind kindwatch.Kind) kindwatch.Kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hubKind(kind)
}

// hubKind is HubKind for a caller that holds mu.
func (h *Hub) hubKind(kind kindwatch.Kind) kindwatch.Kind {
	served, known := h.served[kind.GroupResource()]
	p, offered := h.published[kind.GroupResource().String()]
	switch {
	case offered && (!known || slices.Contains(served.versions, p.Kind.Version)):
		return p.Kind
	case known:
		return served.kind
	}
	return kind
}

// WatchedKinds returns the claim kinds followed in the hub.
func (h *Hub) WatchedKinds() []kindwatch.Kind {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.following))
}
