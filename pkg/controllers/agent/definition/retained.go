// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/managed"
)

// MaxRetainedKinds is how many kinds of a cluster are followed that the hub does not offer to it. A cluster whose owner
// labels more definitions than any hub ever withdrew does so for another purpose.
const MaxRetainedKinds = 100

// RetainedKind decides how a kind is followed of which a workload cluster has a definition with our label, and which is
// not offered. The label is no proof, because the owner of the cluster can write it. So the definition counts only if
// it is of the form of a claim's, and then:
//
//   - if the hub has a definition of that name, only if that is one that Crossplane made for requirements, of the same
//     kind. Its kind is then followed in the hub, too, in a version that both serve;
//   - if the hub has none, there is nothing in the hub to be deleted, and the kind is followed in the workload cluster
//     only.
func RetainedKind(crd *unstructured.Unstructured, hub *HubDefinition) (view.Followed, bool) {
	kind, ok := ClaimKindOf(crd)
	if !ok {
		return view.Followed{}, false
	}
	if hub == nil {
		return view.Followed{Kind: kind, Retained: true}, true
	}
	theirs := hub.kind
	if !hub.published || theirs.GroupKind() != kind.GroupKind() || theirs.Resource != kind.Resource {
		return view.Followed{}, false
	}
	both := servedVersions(crd)
	for _, version := range append([]string{theirs.Version}, hub.served...) {
		if slices.Contains(both, version) {
			theirs.Version = version
			return view.Followed{Kind: theirs, InHub: true, Retained: true}, true
		}
	}
	return view.Followed{}, false
}

// HubDefinition is what is needed of a definition of the hub to judge one of a cluster.
type HubDefinition struct {
	// of is the state that was read.
	of string

	// kind is that of its objects, and published whether Crossplane made it for requirements.
	kind      kindwatch.Kind
	published bool
	served    []string
}

// HubDefinitionOf is what is needed of a definition of the hub; nil if there is none.
func HubDefinitionOf(hub *unstructured.Unstructured) *HubDefinition {
	if hub == nil {
		return nil
	}
	kind, ok := ClaimKindOf(hub)
	return &HubDefinition{of: ownership.VersionOf(hub), kind: kind, published: ok && isPublishedDefinition(hub), served: servedVersions(hub)}
}

// isPublishedDefinition is whether Crossplane made a definition in the hub for requirements: for claims, for namespaced
// composites, or for what an InfrastructurePublication publishes. Of those, 0.12 says that the InfrastructureDefinition
// controls them. Whether the definition is of the form of a requirement's has been looked at before.
func isPublishedDefinition(crd *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(crd)
	if owner == nil {
		return false
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != crossplane.XRDKind.Group {
		return false
	}
	switch owner.Kind {
	case crossplane.XRDKind.Kind:
		categories, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "categories")
		return slices.Contains(categories, "claim") || slices.Contains(categories, "composite")
	case crossplane.InfrastructurePublicationKind.Kind, crossplane.InfrastructureDefinitionKind.Kind:
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		return strings.HasSuffix(kind, crossplane.RequirementKindSuffix)
	}
	return false
}

// ManagedByOther is whether a definition with our label is, going by its metadata, what another controller of Masthead
// puts into clusters: copies of Crossplane's own, and that of Applications. Neither is read, to find that it is no
// definition of claims. The annotation alone does not say so, since the owner of the cluster can write it on any.
func ManagedByOther(crd *unstructured.Unstructured) bool {
	_, group, _ := strings.Cut(crd.GetName(), ".")
	return group == appsv1alpha1.GroupVersion.Group ||
		group == crossplane.XRDKind.Group && crd.GetAnnotations()[fleetv1alpha1.MirroredAnnotation] != ""
}

// ClaimKindOf returns the kind that a definition defines, if it could be that of claims. That of Applications, which
// bears our label as well, never is: it is another controller's, and no hub offers it.
func ClaimKindOf(crd *unstructured.Unstructured) (kindwatch.Kind, bool) {
	kind, ok := managed.KindOf(crd)
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	return kind, ok && kind.Validate() == nil && kind.Group != appsv1alpha1.GroupVersion.Group &&
		crd.GetName() == kind.GroupResource().String() && scope == "Namespaced"
}

func servedVersions(crd *unstructured.Unstructured) []string {
	var out []string
	for _, v := range crossplane.VersionsOf(crd) {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served && name != "" {
			out = append(out, name)
		}
	}
	return out
}
