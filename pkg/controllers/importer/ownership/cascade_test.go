// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// TestInferCluster: of a deleted import, its objects say what un-import needs. Any one object of a cloud suffices.
func TestInferCluster(t *testing.T) {
	object := func(gk schema.GroupKind, externalName string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetGroupVersionKind(gk.WithVersion("v1"))
		if externalName != "" {
			o.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: externalName})
		}
		return o
	}
	core := object(clusterv1.GroupVersion.WithKind("Cluster").GroupKind(), "")
	secret := object(schema.GroupKind{Kind: "Secret"}, "")
	check := func(what string, want reflection.Cloud, wantName string, left ...*unstructured.Unstructured) {
		t.Helper()
		first := append([]*unstructured.Unstructured{core, secret}, left...)
		for _, left := range [][]*unstructured.Unstructured{left, first, append(left, core)} {
			if cloud, name := ownership.InferCluster(left); cloud != want || name != wantName {
				t.Errorf("%s of %s: got %s %q", what, want, cloud, name)
			}
		}
	}
	check("nothing", reflection.EKS, "")
	for _, cloud := range reflection.Clouds() {
		for i, kind := range reflection.Kinds(cloud) {
			for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
				name := ""
				if i == 0 {
					name = "prod"
				}
				check(gk.String(), cloud, name, object(gk, "prod"))
				check(gk.String()+" without a name", cloud, name, object(reflection.Kinds(cloud)[0].Legacy(), name), object(gk, ""))
			}
		}
		for _, gvk := range reflection.ProviderKinds(cloud) {
			check(gvk.Kind, cloud, "", object(gvk, "prod"))
			for _, kind := range []string{"Cluster", "MachinePool"} {
				gk := clusterv1.GroupVersion.WithKind(kind).GroupKind()
				for _, field := range ownership.Cascades(gk) {
					referring := object(gk, "")
					ref := map[string]any{"apiGroup": gvk.Group, "kind": gvk.Kind, "name": "shop"}
					if err := unstructured.SetNestedMap(referring.Object, ref, field...); err != nil {
						t.Fatal(err)
					}
					check("a reference to "+gvk.Kind, cloud, "", referring)
				}
			}
		}
	}
	check("objects of another cloud beside those", reflection.EKS, "prod",
		object(reflection.GKECluster.Legacy(), "theirs"), object(reflection.EKSCluster.Legacy(), "prod"))
}
