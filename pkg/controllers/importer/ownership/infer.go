// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// InferCluster reconstructs the cloud of an import, and the name of its cluster there, from what it has left. Without
// an object that reveals it, any cloud will do: those of Cluster API core are the same for all. The name is empty
// unless a managed resource of the cluster is left.
func InferCluster(left []*unstructured.Unstructured) (cloud reflection.Cloud, clusterName string) {
	for _, cloud := range reflection.Clouds() {
		revealing := slices.DeleteFunc(slices.Clone(left), func(o *unstructured.Unstructured) bool { return !reveals(o, cloud) })
		for _, o := range revealing {
			if reflection.IsCluster(o) {
				clusterName = cmp.Or(o.GetAnnotations()[reflection.ExternalNameAnnotation], clusterName)
			}
		}
		if len(revealing) > 0 {
			return cloud, clusterName
		}
	}
	return reflection.Clouds()[0], ""
}

// reveals reports whether an object is one that imports of a cloud make, or refers to one.
func reveals(o *unstructured.Unstructured, cloud reflection.Cloud) bool {
	gk := o.GroupVersionKind().GroupKind()
	return slices.ContainsFunc(reflection.Kinds(cloud), func(k reflection.Kind) bool { return k.Is(gk) }) ||
		slices.ContainsFunc(reflection.ProviderKinds(cloud), func(k schema.GroupKind) bool { return refersTo(o, k) || k == gk })
}

// refersTo reports whether a Cluster or a MachinePool refers to an object of a kind.
func refersTo(o *unstructured.Unstructured, kind schema.GroupKind) bool {
	return slices.ContainsFunc(Cascades(o.GroupVersionKind().GroupKind()), func(field []string) bool {
		ref, _, err := unstructured.NestedStringMap(o.Object, field...)
		return err == nil && ref["kind"] == kind.Kind && ref["apiGroup"] == kind.Group
	})
}
