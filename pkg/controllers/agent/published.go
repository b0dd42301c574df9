// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// publication is a kind of requirements that the hub's Crossplane offers.
type publication struct {
	// kind is how requirements are read and written on both sides.
	kind kindwatch.Kind

	// form is what they are to Crossplane.
	form form

	// publisher is what offers the kind, by kind and name.
	publisher string
}

// crdName is the name of the CustomResourceDefinition of the requirements.
func (p publication) crdName() string { return p.kind.GroupResource().String() }

// Scopes of a CompositeResourceDefinition.
const (
	scopeNamespaced    = "Namespaced"
	scopeLegacyCluster = "LegacyCluster"
)

// publicationOf returns the kind that a CompositeResourceDefinition offers, if it offers one now.
//
// XRDs are read in apiextensions.crossplane.io/v1, which shows every XRD whatever version it was written in: both
// versions have the same schema and no conversion. An XRD that says nothing about its scope is one of v1 from before there
// were scopes, and v1 shows it as LegacyCluster, where v2 would call it Namespaced.
//
//   - LegacyCluster: the claim kind, if there is one. Crossplane sets the condition Offered when its CRD is established.
//   - Namespaced: the composite's own kind. Crossplane sets the condition Established when its CRD is.
//   - Cluster: nothing. A cluster-scoped object of the hub belongs to no tenant.
//
// An XRD that is being deleted does not offer its kind any more, although its conditions still say so: Crossplane is deleting
// the objects, and one that is pushed now would be lost.
func publicationOf(xrd *unstructured.Unstructured) (publication, bool) {
	if xrd.GetDeletionTimestamp() != nil {
		return publication{}, false
	}
	scope, _, _ := unstructured.NestedString(xrd.Object, "spec", "scope")
	switch scope {
	case "", scopeLegacyCluster:
		return publicationUnder(xrd, "claimNames", "Offered", formClaim)
	case scopeNamespaced:
		return publicationUnder(xrd, "names", "Established", formComposite)
	}
	return publication{}, false
}

// publicationUnder returns the kind that a CompositeResourceDefinition names in a field, once a condition is true.
func publicationUnder(xrd *unstructured.Unstructured, names, condition string, f form) (publication, bool) {
	group, _, _ := unstructured.NestedString(xrd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(xrd.Object, "spec", names, "plural")
	kind, _, _ := unstructured.NestedString(xrd.Object, "spec", names, "kind")
	version := publishedVersion(xrd)
	if group == "" || plural == "" || kind == "" || version == "" || !conditionTrue(xrd, condition) {
		return publication{}, false
	}
	return publication{
		kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
			Resource:         plural,
		},
		form:      f,
		publisher: xrdKind.Kind + "/" + xrd.GetName(),
	}, true
}

// publishedVersion is the version in which requirements travel: the one in which they are stored if it is served, because no
// other can hold more than it, else the first that is served.
func publishedVersion(xrd *unstructured.Unstructured) string {
	return versionToTravel(versionsOf(xrd), "referenceable")
}

// versionToTravel chooses among versions of which a field says that it is the one that is stored.
func versionToTravel(versions []any, stored string) string {
	first := ""
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			continue
		}
		name, _, _ := unstructured.NestedString(version, "name")
		if served, _, _ := unstructured.NestedBool(version, "served"); !served {
			continue
		}
		if isStored, _, _ := unstructured.NestedBool(version, stored); isStored {
			return name
		}
		if first == "" {
			first = name
		}
	}
	return first
}

// conditionTrue is whether the status of an object has a condition of that type that is True.
func conditionTrue(obj *unstructured.Unstructured, conditionType string) bool {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			return c["status"] == "True"
		}
	}
	return false
}

// offers is whether a class offers the claim kinds of an API group to its clusters.
func offers(agent fleetv1alpha1.AgentSpec, group string) bool {
	if agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return false
	}
	return len(agent.APIGroups) == 0 || slices.Contains(agent.APIGroups, group)
}
