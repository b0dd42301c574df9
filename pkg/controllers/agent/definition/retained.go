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
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// MaxRetainedKinds limits how many kinds of a cluster are followed that the hub does not offer to it. A cluster with
// more labelled definitions than any hub ever withdrew has them for another purpose.
const MaxRetainedKinds = 100

// RetainedKind decides how a kind is followed that is not offered, and whose definition in a workload cluster bears our
// label. The label is no proof, because the cluster's owner can write it. So the definition counts only if it has the
// form of a claim's, and then:
//
//   - if the hub has a definition of that name, only if Crossplane made that one for requirements, of the same kind.
//     The kind is then also followed in the hub, in the hub's version. The cluster's is the same one if it serves that;
//   - if the hub has none, there is nothing in the hub to delete, and the kind is followed in the workload cluster
//     only.
func RetainedKind(crd *unstructured.Unstructured, hub *HubDefinition) (index.Followed, bool) {
	kind, ok := ClaimKind(crd)
	if !ok {
		return index.Followed{}, false
	}
	if hub == nil {
		return index.Followed{Kind: kind, Retained: true}, true
	}
	theirs := hub.kind
	if !hub.published || theirs.GroupKind() != kind.GroupKind() || theirs.Resource != kind.Resource {
		return index.Followed{}, false
	}
	if slices.Contains(servedVersions(crd), theirs.Version) {
		kind = theirs
	}
	return index.Followed{Kind: kind, InHub: true, Retained: true}, true
}

// HubDefinition is the part of a hub definition needed to judge one of a cluster.
type HubDefinition struct {
	// of is the state that was read.
	of string

	// kind is that of its objects, in a served version if there is one. published reports whether Crossplane made it for
	// requirements.
	kind      kindwatch.Kind
	published bool
	served    []string
}

// NewHubDefinition returns the relevant parts of a hub definition; nil if there is none.
func NewHubDefinition(hub *unstructured.Unstructured) *HubDefinition {
	if hub == nil {
		return nil
	}
	kind, served := install.ServedKind(hub)
	if !served {
		kind.Version = StorageVersion(hub) // Its watch says that it is not served.
	}
	return &HubDefinition{
		of: ownership.SecretVersion(hub), kind: kind, published: couldBeClaims(hub, kind) && isPublishedDefinition(hub), served: servedVersions(hub),
	}
}

// isPublishedDefinition reports whether Crossplane made a hub definition for requirements: for claims, namespaced
// composites, or what an InfrastructurePublication publishes. Crossplane 0.12 makes the InfrastructureDefinition the
// controller of the latter. That the definition has a requirement's form was checked before.
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

// ManagedByOther reports whether the metadata of a definition with our label say that another Masthead controller
// manages it: copies of Crossplane's own, and that of Applications. These are not read. The annotation alone is no
// proof, since the cluster's owner can write it on any.
func ManagedByOther(crd *unstructured.Unstructured) bool {
	_, group, _ := strings.Cut(crd.GetName(), ".")
	return group == appsv1alpha1.GroupVersion.Group ||
		group == crossplane.XRDKind.Group && crd.GetAnnotations()[fleetv1alpha1.MirroredAnnotation] != ""
}

// ClaimKind returns the kind that a definition defines, if it could be a claim kind. Applications, whose definition
// bears our label as well, never are: another controller manages them, and no hub offers them.
func ClaimKind(crd *unstructured.Unstructured) (kindwatch.Kind, bool) {
	kind, ok := install.ServedKind(crd)
	return kind, ok && couldBeClaims(crd, kind)
}

func couldBeClaims(crd *unstructured.Unstructured, kind kindwatch.Kind) bool {
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	return kind.Validate() == nil && kind.Group != appsv1alpha1.GroupVersion.Group &&
		crd.GetName() == kind.GroupResource().String() && scope == "Namespaced"
}

func servedVersions(crd *unstructured.Unstructured) []string {
	var out []string
	for _, v := range crossplane.Versions(crd) {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); served && name != "" {
			out = append(out, name)
		}
	}
	return out
}
