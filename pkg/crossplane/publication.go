// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Versions returns the versions of a definition, not copied: they are large, and most callers read little of each.
func Versions(definition *unstructured.Unstructured) []any {
	field, _, _ := unstructured.NestedFieldNoCopy(definition.Object, "spec", "versions")
	versions, _ := field.([]any)
	return versions
}

// Publication is a kind of requirements that the hub's Crossplane offers.
type Publication struct {
	// Kind is how requirements are read and written on both sides.
	Kind kindwatch.Kind

	// Form is their form in Crossplane.
	Form Form

	// publisher is the object that offers the kind, by kind and name.
	publisher string
}

// CrdName returns the name of the CustomResourceDefinition of the requirements.
func (p Publication) CrdName() string { return p.Kind.GroupResource().String() }

// Scopes of a CompositeResourceDefinition.
const (
	scopeNamespaced    = "Namespaced"
	scopeLegacyCluster = "LegacyCluster"
)

// ParsePublication returns the kind that a CompositeResourceDefinition currently offers, if any.
//
// XRDs are read in apiextensions.crossplane.io/v1, which shows every XRD regardless of the version it was written in:
// both versions have the same schema and no conversion. An XRD without a scope is a v1 XRD from before scopes existed;
// v1 shows it as LegacyCluster, where v2 would call it Namespaced.
//
//   - LegacyCluster: the claim kind, if there is one. Crossplane sets the condition Offered when its CRD is
//     established.
//   - Namespaced: the composite's own kind. Crossplane sets the condition Established when its CRD is.
//   - Cluster: nothing. A cluster-scoped object of the hub belongs to no tenant.
//
// An XRD that is being deleted no longer offers its kind, although its conditions still say so: Crossplane is deleting
// the objects, and one pushed now would be lost. One that a label withholds offers nothing either.
func ParsePublication(xrd *unstructured.Unstructured) (Publication, bool) {
	if xrd.GetDeletionTimestamp() != nil || IsWithheld(xrd) {
		return Publication{}, false
	}
	scope, _, _ := unstructured.NestedString(xrd.Object, "spec", "scope")
	switch scope {
	case "", scopeLegacyCluster:
		return publicationUnder(xrd, "claimNames", "Offered", FormClaim)
	case scopeNamespaced:
		return publicationUnder(xrd, "names", "Established", FormComposite)
	}
	return Publication{}, false
}

// IsWithheld reports whether a label keeps an object of Crossplane's API from workload clusters. A value other than
// "true" is not guessed at.
func IsWithheld(obj metav1.Object) bool {
	value, labelled := obj.GetLabels()[fleetv1alpha1.PublishLabel]
	return labelled && value != "true"
}

// publicationUnder returns the kind named by a field of a CompositeResourceDefinition, once a condition is true.
func publicationUnder(xrd *unstructured.Unstructured, names, conditionType string, f Form) (Publication, bool) {
	group, _, _ := unstructured.NestedString(xrd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(xrd.Object, "spec", names, "plural")
	kind, _, _ := unstructured.NestedString(xrd.Object, "spec", names, "kind")
	version := publishedVersion(xrd)
	if group == "" || plural == "" || kind == "" || version == "" || !condition.IsTrue(xrd, conditionType) {
		return Publication{}, false
	}
	return Publication{
		Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: kind},
			Resource:         plural,
		},
		Form:      f,
		publisher: XRDKind.Kind + "/" + xrd.GetName(),
	}, true
}

// publishedVersion returns the version in which requirements are synchronised: the storage version if it is served,
// because no other can hold more, else the first served version.
func publishedVersion(xrd *unstructured.Unstructured) string {
	return versionToTravel(Versions(xrd), "referenceable")
}

// versionToTravel chooses among versions, given the field that marks the storage version.
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

// IsReported reports whether an object has a condition by which Crossplane reports on a claim or a composite: Synced,
// or Ready. Crossplane sets them when it first reconciles the object.
func IsReported(obj *unstructured.Unstructured) bool {
	return condition.Entry(obj, "Synced") != nil || condition.Entry(obj, "Ready") != nil
}
