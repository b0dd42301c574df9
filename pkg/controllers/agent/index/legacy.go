// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// hasCRD reports whether the hub has a definition; known is false while that cannot be read.
func (h *Hub) hasCRD(kind kindwatch.Kind) (has, known bool) {
	_, err := h.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: kind.GroupResource().String()})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// refreshLegacy watches the old API if the hub serves it.
func (h *Hub) refreshLegacy() {
	publications, _ := h.hasCRD(crossplane.InfrastructurePublicationKind)
	definitions, _ := h.hasCRD(crossplane.InfrastructureDefinitionKind)
	if publications && definitions {
		h.Watcher.Set(ownerLegacy, crossplane.InfrastructurePublicationKind, crossplane.InfrastructureDefinitionKind)
		return
	}
	h.Watcher.Set(ownerLegacy)
}

// legacyPublications returns what the hub publishes with the old API, if known.
func (h *Hub) legacyPublications() ([]crossplane.Publication, bool) {
	for _, kind := range []kindwatch.Kind{crossplane.InfrastructurePublicationKind, crossplane.InfrastructureDefinitionKind} {
		if has, known := h.hasCRD(kind); !has {
			return nil, known
		}
	}
	publications, err := h.Watcher.List(crossplane.InfrastructurePublicationKind)
	if err != nil {
		return nil, false
	}
	var out []crossplane.Publication
	for _, publication := range publications {
		p := publication.Object()
		d, err := h.Watcher.Get(crossplane.InfrastructureDefinitionKind, types.NamespacedName{Name: crossplane.DefinitionPublished(p)})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, false
		}
		if published, ok := crossplane.ParseLegacyPublication(p, d); ok {
			out = append(out, published)
		}
	}
	return out, true
}
