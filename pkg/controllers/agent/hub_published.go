// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// readPublications returns what the hub offers now, by the name of the CRD. known is false as long as nobody could look. What
// an XRD offers goes before what the old API does under the same name.
func (h *hub) readPublications() (now map[string]publication, known bool) {
	legacy, known := h.legacyPublications()
	if !known {
		return nil, false
	}
	xrds, err := h.watcher.List(xrdKind)
	if err != nil {
		// A hub of the old API alone has no XRDs. In every other one, that they cannot be read says nothing.
		if has, known := h.hasCRD(xrdKind); has || !known || !h.isLegacy() {
			return nil, false
		}
	}
	now = map[string]publication{}
	for _, p := range legacy {
		now[p.crdName()] = p
	}
	for _, xrd := range xrds {
		if p, ok := publicationOf(xrd); ok {
			now[p.crdName()] = p
		}
	}
	return now, true
}

// isLegacy is whether the hub serves the old API.
func (h *hub) isLegacy() bool {
	has, _ := h.hasCRD(infrastructurePublicationKind)
	return has
}

// refreshPublished finds out what the hub offers now. What cannot be found out stays as it was last seen.
func (h *hub) refreshPublished() {
	now, known := h.readPublications()
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
		for _, w := range h.workloads.all() {
			h.enqueueDefinitions(w)
		}
	}
}

// publications returns what the hub offers, by the name of the CRD.
func (h *hub) publications() map[string]publication {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.published)
}

// publication returns what the hub offers under the name of a CRD. known is false as long as nobody could look.
func (h *hub) publication(crd string) (p publication, offered, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, offered = h.published[crd]
	return p, offered, h.publishedKnown
}

// cannotKnowPublications is whether the hub has answered that it cannot say what it offers, since this process runs.
func (h *hub) cannotKnowPublications() bool {
	h.mu.Lock()
	known := h.publishedKnown
	h.mu.Unlock()
	state, _ := h.watcher.State(xrdKind)
	return !known && (state == kindwatch.StateNotServed || state == kindwatch.StateForbidden)
}

// enqueueDefinitions queues every definition that concerns a workload cluster.
func (h *hub) enqueueDefinitions(w *workload) {
	names := sets.New[string]()
	for name := range h.publications() {
		names.Insert(name)
	}
	names.Insert(w.definitionNames()...)
	for name := range names {
		h.definitions.add(definitionRequest(w.name, name))
	}
}
