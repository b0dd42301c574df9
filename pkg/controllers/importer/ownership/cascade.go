// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// Cascades are the fields of a Cluster and a MachinePool that name what Cluster API core deletes with them.
func Cascades(gk schema.GroupKind) [][]string {
	switch gk {
	case clusterv1.GroupVersion.WithKind("Cluster").GroupKind():
		return [][]string{{"spec", "infrastructureRef"}, {"spec", "controlPlaneRef"}}
	case clusterv1.GroupVersion.WithKind("MachinePool").GroupKind():
		return [][]string{{"spec", "template", "spec", "infrastructureRef"}, {"spec", "template", "spec", "bootstrap", "configRef"}}
	default:
		return nil
	}
}

// InferSpec fills a spec from what an object reveals about it.
func InferSpec(spec *fleetv1alpha1.ClusterImportSpec, o *unstructured.Unstructured) {
	gk := o.GroupVersionKind().GroupKind()
	for _, name := range reflection.Clouds() {
		kinds := reflection.Kinds(name)
		managed := slices.ContainsFunc(kinds, func(k reflection.Kind) bool { return k.Is(gk) })
		if !managed && !slices.ContainsFunc(ProviderKinds(name), func(k schema.GroupVersionKind) bool { return refersTo(o, k) || k.GroupKind() == gk }) {
			continue
		}
		cluster := ""
		if kinds[0].Is(gk) {
			cluster = o.GetAnnotations()[reflection.ExternalNameAnnotation]
		}
		switch {
		case name == reflection.EKS && (spec.EKS == nil || cluster != ""):
			spec.EKS = &fleetv1alpha1.EKSImport{ClusterName: cluster}
		case name == reflection.AKS && (spec.AKS == nil || cluster != ""):
			spec.AKS = &fleetv1alpha1.AKSImport{ClusterName: cluster}
		case name == reflection.GKE && (spec.GKE == nil || cluster != ""):
			spec.GKE = &fleetv1alpha1.GKEImport{ClusterName: cluster}
		}
	}
}

// refersTo reports whether a Cluster or a MachinePool refers to an object of a kind.
func refersTo(o *unstructured.Unstructured, kind schema.GroupVersionKind) bool {
	return slices.ContainsFunc(Cascades(o.GroupVersionKind().GroupKind()), func(field []string) bool {
		ref, _, err := unstructured.NestedStringMap(o.Object, field...)
		return err == nil && ref["kind"] == kind.Kind && ref["apiGroup"] == kind.Group
	})
}

// ProviderKinds are the kinds of a cloud's provider of Cluster API, in the order of their creation.
func ProviderKinds(name reflection.Cloud) []schema.GroupVersionKind {
	return slices.DeleteFunc(reflection.ReflectedKinds(name), func(k schema.GroupVersionKind) bool { return k.Group == clusterv1.GroupVersion.Group })
}
