// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Before CompositeResourceDefinitions, Crossplane 0.10 to 0.12 had an InfrastructureDefinition for the composite and an
// InfrastructurePublication that made it available as a namespaced kind, <Kind>Requirement. A hub that still serves
// these publishes that kind. They are watched only in a hub that has their CRDs, because a kind that is not served is
// requested again and again.
var (
	InfrastructurePublicationKind = legacyKind("InfrastructurePublication") //nolint:gochecknoglobals // A constant.
	InfrastructureDefinitionKind  = legacyKind("InfrastructureDefinition")  //nolint:gochecknoglobals // A constant.
)

func legacyKind(kind string) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: XRDKind.Group, Version: "v1alpha1", Kind: kind},
		Resource:         strings.ToLower(kind) + "s",
		ClusterScoped:    true,
	}
}

// Suffixes that Crossplane adds to the names of published kinds. The plural is made of the singular.
const (
	RequirementKindSuffix   = "Requirement"
	requirementPluralSuffix = "requirements"
)

// ParseLegacyPublication returns the kind that an InfrastructurePublication of an InfrastructureDefinition currently
// offers, if any. Crossplane reports that with the condition Established, and with Ready in 0.10.
func ParseLegacyPublication(p, definition *unstructured.Unstructured) (Publication, bool) {
	if p.GetDeletionTimestamp() != nil || IsWithheld(p) || !condition.IsTrue(p, "Established") && !condition.IsTrue(p, "Ready") {
		return Publication{}, false
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
		return Publication{}, false
	}
	return Publication{
		Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind + RequirementKindSuffix},
			Resource:         singular + requirementPluralSuffix,
		},
		Form:      FormClaim,
		publisher: InfrastructurePublicationKind.Kind + "/" + p.GetName(),
	}, true
}

// DefinitionPublished returns the name of the InfrastructureDefinition that an InfrastructurePublication publishes.
func DefinitionPublished(p *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(p.Object, "spec", "infrastructureDefinitionRef", "name")
	return name
}

// IsLegacyCRD reports whether a definition of the hub is one of the legacy API.
func IsLegacyCRD(name string) bool {
	return name == InfrastructurePublicationKind.GroupResource().String() || name == InfrastructureDefinitionKind.GroupResource().String()
}
