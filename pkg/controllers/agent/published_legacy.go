// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Before there were CompositeResourceDefinitions, Crossplane 0.10 to 0.12 had an InfrastructureDefinition for the composite
// and an InfrastructurePublication that made it available as a namespaced kind, <Kind>Requirement. A hub that still serves
// these publishes that kind. They are watched only in a hub that has their CRDs, because a kind that is not served is asked
// for again and again.
var (
	infrastructurePublicationKind = legacyKind("InfrastructurePublication") //nolint:gochecknoglobals // A constant.
	infrastructureDefinitionKind  = legacyKind("InfrastructureDefinition")  //nolint:gochecknoglobals // A constant.
)

func legacyKind(kind string) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: xrdKind.Group, Version: "v1alpha1", Kind: kind},
		Resource:         strings.ToLower(kind) + "s",
		ClusterScoped:    true,
	}
}

// Suffixes that Crossplane gives to the names of what it publishes. Its plural is made of the singular.
const (
	requirementKindSuffix   = "Requirement"
	requirementPluralSuffix = "requirements"
)

// legacyPublicationOf returns the kind that an InfrastructurePublication of an InfrastructureDefinition offers, if it offers
// one now. Crossplane says that with the condition Established, and said so with Ready in 0.10.
func legacyPublicationOf(p, definition *unstructured.Unstructured) (publication, bool) {
	if p.GetDeletionTimestamp() != nil || !conditionTrue(p, "Established") && !conditionTrue(p, "Ready") {
		return publication{}, false
	}
	template := []string{"spec", "crdSpecTemplate"}
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(definition.Object, append(template, path...)...)
		return s
	}
	group, kind, singular := text("group"), text("names", "kind"), text("names", "singular")
	if singular == "" {
		singular = strings.ToLower(kind)
	}
	version := text("version")
	if version == "" {
		versions, _, _ := unstructured.NestedSlice(definition.Object, append(template, "versions")...)
		version = versionToTravel(versions, "storage")
	}
	if group == "" || kind == "" || version == "" {
		return publication{}, false
	}
	return publication{
		kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind + requirementKindSuffix},
			Resource:         singular + requirementPluralSuffix,
		},
		form:      formClaim,
		publisher: infrastructurePublicationKind.Kind + "/" + p.GetName(),
	}, true
}

// definitionPublished is the name of the InfrastructureDefinition that an InfrastructurePublication publishes.
func definitionPublished(p *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(p.Object, "spec", "infrastructureDefinitionRef", "name")
	return name
}

// isLegacyCRD is whether a definition of the hub is one of those that make it a hub of the old API.
func isLegacyCRD(name string) bool {
	return name == infrastructurePublicationKind.GroupResource().String() || name == infrastructureDefinitionKind.GroupResource().String()
}

// hasCRD is whether the hub has a definition; known is false as long as nobody could look.
func (h *hub) hasCRD(kind kindwatch.Kind) (has, known bool) {
	_, err := h.watcher.Get(hubCRDKind, types.NamespacedName{Name: kind.GroupResource().String()})
	return err == nil, err == nil || apierrors.IsNotFound(err)
}

// refreshLegacy watches the old API if the hub serves it.
func (h *hub) refreshLegacy() {
	publications, _ := h.hasCRD(infrastructurePublicationKind)
	definitions, _ := h.hasCRD(infrastructureDefinitionKind)
	if publications && definitions {
		h.watcher.Set(ownerLegacy, infrastructurePublicationKind, infrastructureDefinitionKind)
		return
	}
	h.watcher.Set(ownerLegacy)
}

// legacyPublications returns what the hub publishes by the old API, if that is known.
func (h *hub) legacyPublications() ([]publication, bool) {
	for _, kind := range []kindwatch.Kind{infrastructurePublicationKind, infrastructureDefinitionKind} {
		if has, known := h.hasCRD(kind); !has {
			return nil, known
		}
	}
	publications, err := h.watcher.List(infrastructurePublicationKind)
	if err != nil {
		return nil, false
	}
	var out []publication
	for _, p := range publications {
		d, err := h.watcher.Get(infrastructureDefinitionKind, types.NamespacedName{Name: definitionPublished(p)})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, false
		}
		if published, ok := legacyPublicationOf(p, d); ok {
			out = append(out, published)
		}
	}
	return out, true
}
