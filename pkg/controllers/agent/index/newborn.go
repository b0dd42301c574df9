// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// RecentCreation is how long after the creation of an object in the hub a missing claim is taken for one that was
// perhaps deleted at the instant of the creation. A killed manager has a successor by then.
const RecentCreation = 5 * time.Minute

// leastRecentCreations is how many origins of a cluster are recorded before old ones are pruned.
const leastRecentCreations = 64

// recentCreations are the origins of objects just created in the hub, by cluster identifier. Old ones are pruned when
// their number has doubled since the last time, so that the cost of each is constant.
type recentCreations map[string]*clusterCreations

type clusterCreations struct {
	// created is the creation time of each origin's object.
	created map[ownership.Origin]time.Time
	// limit is the number of origins at which old ones are pruned.
	limit int
}

func (n recentCreations) insert(o ownership.Origin, created, now time.Time) {
	c := n[o.Identifier]
	if c == nil {
		c = &clusterCreations{created: map[ownership.Origin]time.Time{}, limit: leastRecentCreations}
		n[o.Identifier] = c
	}
	c.created[o] = created
	if len(c.created) >= c.limit {
		maps.DeleteFunc(c.created, func(_ ownership.Origin, at time.Time) bool { return now.Sub(at) >= RecentCreation })
		c.limit = max(leastRecentCreations, 2*len(c.created))
	}
}

func (n recentCreations) remove(o ownership.Origin) {
	c := n[o.Identifier]
	if c == nil {
		return
	}
	delete(c.created, o)
	if len(c.created) == 0 {
		delete(n, o.Identifier)
	}
}

// forgetKinds drops the origins of kinds that are no longer watched.
func (n recentCreations) forgetKinds(kinds sets.Set[schema.GroupResource]) {
	for identifier, c := range n {
		maps.DeleteFunc(c.created, func(o ownership.Origin, _ time.Time) bool { return kinds.Has(o.Resource) })
		if len(c.created) == 0 {
			delete(n, identifier)
		}
	}
}

// in returns the origins in a cluster.
func (n recentCreations) in(identifier string) []ownership.Origin {
	if c := n[identifier]; c != nil {
		return slices.Collect(maps.Keys(c.created))
	}
	return nil
}

// of returns the origins of a kind in a cluster.
func (n recentCreations) of(identifier string, kind schema.GroupResource) []ownership.Origin {
	return slices.DeleteFunc(n.in(identifier), func(o ownership.Origin) bool { return o.Resource != kind })
}

func (n recentCreations) has(o ownership.Origin, now time.Time) bool {
	at := n.at(o)
	return !at.IsZero() && now.Sub(at) < RecentCreation
}

// at returns the time recorded for an origin, or the zero time.
func (n recentCreations) at(o ownership.Origin) time.Time {
	if c := n[o.Identifier]; c != nil {
		return c.created[o]
	}
	return time.Time{}
}

// trackCreation maintains the index of new objects. The caller holds mu.
func (h *Hub) trackCreation(o ownership.Origin, obj *unstructured.Unstructured) {
	now := h.Clock.Now()
	if at, ok := ownership.CreatedAt(obj); ok && ownership.WasCreatedWithin(obj, now, RecentCreation) && at.After(h.released.at(o)) {
		h.recentCreations.insert(o, at, now)
		return
	}
	h.recentCreations.remove(o)
}

// IsRecentCreation reports whether the object of an origin was just created and its claim was not released since.
func (h *Hub) IsRecentCreation(o ownership.Origin) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.recentCreations.has(o, h.Clock.Now())
}

// MarkReleased records that the claim of an origin was released while its object stays: a missing claim then means
// nothing. The record is dropped when it no longer matters, and lost on restart.
func (h *Hub) MarkReleased(o ownership.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.markReleasedLocked(o)
}

func (h *Hub) markReleasedLocked(o ownership.Origin) {
	if now := h.Clock.Now(); h.recentCreations.has(o, now) {
		h.released.insert(o, now, now)
	}
	h.recentCreations.remove(o)
}

// MarkAllReleased is Released for every claim of a cluster that is no longer managed.
func (h *Hub) MarkAllReleased(identifier string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.recentCreations.in(identifier) {
		h.markReleasedLocked(o)
	}
}

// EnqueueUnclaimed queues the claims of a kind that are missing in a cluster although their object was just created in
// the hub: a deleted claim sends no event.
func (h *Hub) EnqueueUnclaimed(w *Cluster, kind kindwatch.Kind) {
	cluster, ok := h.Fleet.Lookup(w.Name)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return
	}
	h.mu.Lock()
	origins := h.recentCreations.of(cluster.EffectiveIdentifier(), kind.GroupResource())
	h.mu.Unlock()
	for _, from := range origins {
		if claim, known := w.getClaim(from); !known || claim != nil {
			continue
		}
		h.Requirements.AddInitial(multicluster.ObjectRequest{
			ClusterName: w.Name, Kind: kind, NamespacedName: types.NamespacedName{Namespace: from.Namespace, Name: from.Name},
		})
	}
}
