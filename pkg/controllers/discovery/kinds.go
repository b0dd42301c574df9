// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// crossplaneGroup is the API group of every kind that is mirrored.
const crossplaneGroup = "apiextensions.crossplane.io"

// Resources that are mirrored. The last two are those of Crossplane v0.10 to v0.12, where a hub still serves them.
const (
	resourceXRD         = "compositeresourcedefinitions"
	resourceComposition = "compositions"
	resourceDefinition  = "infrastructuredefinitions"
	resourcePublication = "infrastructurepublications"
)

// mirroredKind is a kind of the hub that is shown to users of workload clusters.
type mirroredKind struct {
	resource string

	// groupOf returns the API group that an object with this spec concerns, which a class may or may not offer.
	groupOf func(spec map[string]any) string
}

// crd is the name of the kind's CustomResourceDefinition.
func (k mirroredKind) crd() string { return k.resource + "." + crossplaneGroup }

func (k mirroredKind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: crossplaneGroup, Resource: k.resource}
}

// mirroredKinds returns the mirrored kinds in processing order.
func mirroredKinds() []mirroredKind {
	return []mirroredKind{
		{resource: resourceXRD, groupOf: func(spec map[string]any) string {
			return text(spec, "group")
		}},
		{resource: resourceComposition, groupOf: func(spec map[string]any) string {
			return composedKind(spec).Group
		}},
		{resource: resourceDefinition, groupOf: func(spec map[string]any) string {
			return text(spec, "crdSpecTemplate", "group")
		}},
		{resource: resourcePublication, groupOf: func(spec map[string]any) string {
			// A definition has the name of the CRD that it generates, so no lookup is needed.
			_, group, _ := strings.Cut(text(spec, "infrastructureDefinitionRef", "name"), ".")
			return group
		}},
	}
}

func text(spec map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(spec, path...)
	return s
}

// composedKind returns the kind that a Composition with this spec composes. Crossplane v0.10 to v0.12 had another name
// for the field.
func composedKind(spec map[string]any) schema.GroupKind {
	for _, field := range []string{"compositeTypeRef", "from"} {
		// The core group offers no infrastructure.
		if gv, _ := schema.ParseGroupVersion(text(spec, field, "apiVersion")); gv.Group != "" {
			return schema.GroupKind{Group: gv.Group, Kind: text(spec, field, "kind")}
		}
	}
	return schema.GroupKind{}
}

// crdKind watches one CustomResourceDefinition: fully in the hub, whose schema is copied, metadata only in a workload
// cluster, where those that Masthead put there share one watch.
func crdKind(name string, metadataOnly bool) kindwatch.Kind {
	kind := multicluster.DefinitionNamed(name)
	kind.MetadataOnly = metadataOnly
	return kind
}

// Kinds in a workload cluster of what Masthead puts there itself: definitions, the policy, and its binding.
var (
	ownedDefinitionKind = multicluster.OwnedDefinitions() //nolint:gochecknoglobals // A constant.

	policyKind  = admissionKind("validatingadmissionpolicies", "ValidatingAdmissionPolicy")              //nolint:gochecknoglobals // A constant.
	bindingKind = admissionKind("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding") //nolint:gochecknoglobals // A constant.
)

func admissionKind(resource, kind string) kindwatch.Kind {
	return kindwatch.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind},
		Resource:         resource,
		ClusterScoped:    true,
		MetadataOnly:     true,
		FieldSelector:    "metadata.name=" + policyName,
	}
}

// servedKind returns how to read and write a mirrored kind's objects according to its CustomResourceDefinition.
func servedKind(crd *unstructured.Unstructured, resource string) (kindwatch.Kind, bool) {
	kind, ok := install.ServedKind(crd)
	kind.ClusterScoped = true
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	return kind, ok && kind.Group == crossplaneGroup && kind.Resource == resource && scope == "Cluster" && kind.Validate() == nil
}

// mirrorKind returns how the copies of a hub kind are watched in a workload cluster.
func mirrorKind(hub kindwatch.Kind) kindwatch.Kind {
	hub.MetadataOnly = true
	return hub
}
