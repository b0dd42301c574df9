// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// ReadPublications returns what the hub offers now, by CRD name. known is false while that cannot be read. XRDs take
// precedence over the old API.
func (h *Hub) ReadPublications() (now map[string]crossplane.Publication, known bool) {
	legacy, known := h.legacyPublications()
	xrds, listed := h.listXRDs()
	if !known || !listed {
		return nil, false
	}
	now = map[string]crossplane.Publication{}
	for _, p := range legacy {
		now[p.CrdName()] = p
	}
	for _, xrd := range xrds {
		if p, ok := crossplane.ParsePublication(xrd.Object()); ok {
			now[p.CrdName()] = p
		}
	}
	return now, true
}

// KnowsPublications reports whether what the hub offers can be read now.
func (h *Hub) KnowsPublications() bool {
	_, known := h.legacyPublications()
	_, listed := h.listXRDs()
	return known && listed
}

// listXRDs lists them if that is known. A hub with only the old API has none. In any other, a list that cannot be read
// means nothing.
func (h *Hub) listXRDs() (xrds []*kindwatch.Item, known bool) {
	xrds, err := h.Watcher.List(crossplane.XRDKind)
	if err != nil {
		has, known := h.hasCRD(crossplane.XRDKind)
		return nil, known && !has && h.isLegacy()
	}
	return xrds, true
}

// isLegacy reports whether the hub serves the old API.
func (h *Hub) isLegacy() bool {
	has, _ := h.hasCRD(crossplane.InfrastructurePublicationKind)
	return has
}

// refreshPublished reads what the hub offers now, and makes its watcher follow it. If that fails, the last state stays.
func (h *Hub) refreshPublished(read func() (now map[string]crossplane.Publication, known bool)) {
	// Reading and applying are one step: of two concurrent refreshes, the one that read later must win.
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	now, known := read()
	if !known {
		return
	}
	h.mu.Lock()
	before, first := h.published, !h.publishedKnown
	h.published, h.publishedKnown = now, true
	h.mu.Unlock()

	changed := sets.New[string]()
	for name, p := range now {
		if before[name] != p {
			changed.Insert(name)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			changed.Insert(name)
		}
	}
	if first || changed.Len() > 0 {
		h.refreshOffered()
		for _, w := range h.Clusters.All() {
			h.EnqueueDefinitions(w)
		}
	}
}

// publications returns what the hub offers, by CRD name.
func (h *Hub) publications() map[string]crossplane.Publication {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.published)
}

// Publication returns what the hub offers under a CRD name. known is false until that was first read.
func (h *Hub) Publication(crd string) (p crossplane.Publication, offered, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, offered = h.published[crd]
	return p, offered, h.publishedKnown
}

// CannotKnowPublications reports whether what the hub offers was never read since this process started, because the
// hub does not serve XRDs or forbids reading them.
func (h *Hub) CannotKnowPublications() bool {
	h.mu.Lock()
	known := h.publishedKnown
	h.mu.Unlock()
	state, _ := h.Watcher.State(crossplane.XRDKind)
	return !known && (state == kindwatch.StateNotServed || state == kindwatch.StateForbidden)
}

// EnqueueDefinitions queues every definition that concerns a workload cluster.
func (h *Hub) EnqueueDefinitions(w *Cluster) {
	names := sets.New[string]()
	for name := range h.publications() {
		names.Insert(name)
	}
	names.Insert(w.definitionNames()...)
	for name := range names {
		h.Definitions.Add(DefinitionRequest(w.Name, name))
	}
}

// Offers reports whether a class offers the claim kinds of an API group to its clusters.
func Offers(agent fleetv1alpha1.AgentSpec, group string) bool {
	if agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return false
	}
	return len(agent.APIGroups) == 0 || slices.Contains(agent.APIGroups, group)
}
