// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// NewbornFor is how long after its creation an object of the hub is taken for one whose claim was perhaps deleted in
// the instant of the creation. A manager that was killed has a successor by then.
const NewbornFor = 5 * time.Minute

// leastNewborns is how many origins of a cluster are noted before it is looked which of them are too old.
const leastNewborns = 64

// newborns are the origins of objects that were created in the hub a moment ago, by the identifier of their cluster.
// The old ones are dropped when there are twice as many as there were last time, so that one costs the same however
// many there are.
type newborns map[string]*cohort

type cohort struct {
	// created is when the object of an origin was created.
	created map[ownership.Origin]time.Time
	// limit is how many there may be before the old ones are dropped.
	limit int
}

func (n newborns) insert(o ownership.Origin, created, now time.Time) {
	c := n[o.Identifier]
	if c == nil {
		c = &cohort{created: map[ownership.Origin]time.Time{}, limit: leastNewborns}
		n[o.Identifier] = c
	}
	c.created[o] = created
	if len(c.created) >= c.limit {
		maps.DeleteFunc(c.created, func(_ ownership.Origin, at time.Time) bool { return now.Sub(at) >= NewbornFor })
		c.limit = max(leastNewborns, 2*len(c.created))
	}
}

func (n newborns) remove(o ownership.Origin) {
	c := n[o.Identifier]
	if c == nil {
		return
	}
	delete(c.created, o)
	if len(c.created) == 0 {
		delete(n, o.Identifier)
	}
}

// forgetKinds drops what is of kinds that are not watched any more.
func (n newborns) forgetKinds(kinds sets.Set[kindwatch.Kind]) {
	for identifier, c := range n {
		maps.DeleteFunc(c.created, func(o ownership.Origin, _ time.Time) bool { return kinds.Has(o.Kind) })
		if len(c.created) == 0 {
			delete(n, identifier)
		}
	}
}

// in returns the origins in a cluster.
func (n newborns) in(identifier string) []ownership.Origin {
	if c := n[identifier]; c != nil {
		return slices.Collect(maps.Keys(c.created))
	}
	return nil
}

// of returns the origins of a kind in a cluster.
func (n newborns) of(identifier string, kind kindwatch.Kind) []ownership.Origin {
	return slices.DeleteFunc(n.in(identifier), func(o ownership.Origin) bool { return o.Kind != kind })
}

func (n newborns) has(o ownership.Origin, now time.Time) bool {
	at := n.at(o)
	return !at.IsZero() && now.Sub(at) < NewbornFor
}

// at is when what is noted about an origin happened; the zero time if nothing is.
func (n newborns) at(o ownership.Origin) time.Time {
	if c := n[o.Identifier]; c != nil {
		return c.created[o]
	}
	return time.Time{}
}

// trackNewborn keeps the index of what was created a moment ago. The caller holds mu.
func (h *Hub) trackNewborn(o ownership.Origin, obj *unstructured.Unstructured) {
	now := h.Clock.Now()
	if at, ok := ownership.CreatedAt(obj); ok && ownership.WasCreatedWithin(obj, now, NewbornFor) && at.After(h.released.at(o)) {
		h.newborns.insert(o, at, now)
		return
	}
	h.newborns.remove(o)
}

// IsNewborn is whether the object of an origin was created a moment ago, and its claim was not let go since.
func (h *Hub) IsNewborn(o ownership.Origin) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newborns.has(o, h.Clock.Now())
}

// Released notes that the claim of an origin was let go while its object stays: its absence says nothing from now on.
// That is forgotten when it would make no difference any more, and by a manager that is restarted.
func (h *Hub) Released(o ownership.Origin) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.releasedLocked(o)
}

func (h *Hub) releasedLocked(o ownership.Origin) {
	if now := h.Clock.Now(); h.newborns.has(o, now) {
		h.released.insert(o, now, now)
	}
	h.newborns.remove(o)
}

// ReleasedAll is Released for every claim of a cluster that is left alone from now on.
func (h *Hub) ReleasedAll(identifier string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.newborns.in(identifier) {
		h.releasedLocked(o)
	}
}

// EnqueueUnclaimed queues the claims of a kind that a cluster does not have, and for which an object was created in the
// hub a moment ago: of a claim that is gone there is no event.
func (h *Hub) EnqueueUnclaimed(w *Cluster, kind kindwatch.Kind) {
	cluster, ok := h.Fleet.Lookup(w.Name)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return
	}
	h.mu.Lock()
	origins := h.newborns.of(cluster.EffectiveIdentifier(), kind)
	h.mu.Unlock()
	for _, from := range origins {
		if claim, known := w.claimOf(from); !known || claim != nil {
			continue
		}
		h.Requirements.AddInitial(request.Request{
			ClusterName: w.Name, Kind: kind, NamespacedName: types.NamespacedName{Namespace: from.Namespace, Name: from.Name},
		})
	}
}
