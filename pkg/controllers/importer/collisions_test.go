// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// managedOfOthers is a managed resource for an EKS cluster of the name that the import names.
func managedOfOthers(gk schema.GroupKind, namespace, configKind, config string, change func(map[string]any)) *unstructured.Unstructured {
	ref := map[string]any{"name": config}
	if configKind != "" {
		ref["kind"] = configKind
	}
	spec := map[string]any{"forProvider": map[string]any{"region": "eu-central-1"}, "providerConfigRef": ref}
	m := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	m.SetGroupVersionKind(gk.WithVersion("v1beta1"))
	m.SetNamespace(namespace)
	m.SetName("theirs")
	m.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: "prod"})
	if change != nil {
		change(m.Object)
	}
	return m
}

// idOfAnImport is what the provider shows for anImport.
const idOfAnImport = "arn:aws:eks:eu-central-1:123456789012:cluster/prod"

func showsID(id string) func(map[string]any) {
	return func(o map[string]any) { o["status"] = map[string]any{"atProvider": map[string]any{"arn": id}} }
}

// TestTenantBlocksNoOtherImport: the attacker creates a managed resource, with their own configuration, of the name of
// a cluster that another user wants to import.
func TestTenantBlocksNoOtherImport(t *testing.T) {
	theirs := managedOfOthers(reflection.EKSCluster.Namespaced(), "tenant", "ProviderConfig", "customer", showsID(idOfAnImport))
	h := newHub(t, anImport(), theirs)
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
}

// TestClusterThatCrossplaneManagesIsNotImported: a managed resource that is really for the cluster stops the import,
// before it creates anything or, where only the ID shows it, before it reflects anything.
func TestClusterThatCrossplaneManagesIsNotImported(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		made   []string
	}{
		"SameConfig":    {config: "customer"},
		"AnotherConfig": {config: "another", made: []string{"Cluster", "ClusterAuth", "NodeGroup", "Subnet", "VPC"}},
	} {
		t.Run(name, func(t *testing.T) {
			other := managedOfOthers(reflection.EKSCluster.Namespaced(), "customers", "ProviderConfig", tc.config, showsID(idOfAnImport))
			h := newHub(t, anImport(), other)
			h.settle()
			h.want(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByCrossplane)
			made := map[string]bool{}
			for _, gvk := range kindsOfEKS() {
				for _, o := range h.list(gvk) {
					if bears := o.GetLabels()[fleetv1alpha1.ImportUIDLabel]; bears != "" && !reflection.EKSClusterAuth.Is(gvk.GroupKind()) {
						made[gvk.Group+"/"+gvk.Kind] = true
					}
				}
			}
			for kind := range made {
				if slices.ContainsFunc(reflection.ReflectedKinds(reflection.EKS), func(k schema.GroupVersionKind) bool {
					return k.Group+"/"+k.Kind == kind
				}) {
					t.Errorf("want nothing reflected, got %v", slices.Sorted(maps.Keys(made)))
				}
			}
			if len(tc.made) == 0 && len(made) > 0 {
				t.Errorf("want nothing made, got %v", slices.Sorted(maps.Keys(made)))
			}
		})
	}
}
