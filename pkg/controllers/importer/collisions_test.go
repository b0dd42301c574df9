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
	"github.com/masthead-dev/masthead/internal/test/importertest"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// managedOfOthers is a managed resource for the EKS cluster that anImport names, with a provider configuration.
func managedOfOthers(namespace, config string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"forProvider":       map[string]any{"region": "eu-central-1"},
			"providerConfigRef": map[string]any{"kind": "ProviderConfig", "name": config},
		},
		"status": map[string]any{"atProvider": map[string]any{"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/prod"}},
	}}
	m.SetGroupVersionKind(reflection.EKSCluster.Namespaced().WithVersion("v1beta1"))
	m.SetNamespace(namespace)
	m.SetName("theirs")
	m.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: "prod"})
	return m
}

// TestTenantBlocksNoOtherImport: the attacker creates a managed resource, with their own configuration, of the name of
// a cluster that another user wants to import.
func TestTenantBlocksNoOtherImport(t *testing.T) {
	theirs := managedOfOthers("tenant", "customer")
	h := newHub(t, anImport(), theirs)
	h.settle()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
}

// TestClusterThatCrossplaneManagesIsNotImported: a managed resource that is really for the cluster stops the import,
// before it creates anything or, where only the ID shows it, before it reflects anything.
func TestClusterThatCrossplaneManagesIsNotImported(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		// observes is whether the import makes managed resources before it stops.
		observes bool
	}{
		"SameConfig":    {config: "customer"},
		"AnotherConfig": {config: "another", observes: true},
	} {
		t.Run(name, func(t *testing.T) {
			other := managedOfOthers("customers", tc.config)
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
				if slices.ContainsFunc(importertest.ReflectedKinds(reflection.EKS), func(k schema.GroupVersionKind) bool {
					return k.Group+"/"+k.Kind == kind
				}) {
					t.Errorf("want nothing reflected, got %v", slices.Sorted(maps.Keys(made)))
				}
			}
			if (len(made) > 0) != tc.observes {
				t.Errorf("want managed resources: %v, got %v", tc.observes, slices.Sorted(maps.Keys(made)))
			}
		})
	}
}
