// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// An author can repeat a source 32 times, and a kind 64 times: it is looked for once.
func TestWhatIsRepeatedIsLookedForOnce(t *testing.T) {
	release := func(namespace string) *appsv1alpha1.DiscoveredRelease {
		return &appsv1alpha1.DiscoveredRelease{Name: "shop", Namespace: namespace}
	}
	object := func(namespace string) *appsv1alpha1.DiscoveredObject {
		return &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "Service", Name: "db", Namespace: namespace}
	}
	argo := func(namespace string) *appsv1alpha1.ArgoApplication {
		return &appsv1alpha1.ArgoApplication{Name: "shop", Namespace: namespace}
	}
	type source = appsv1alpha1.DiscoverySource
	const ofTheApplication = "No namespace is that of the Application."
	for name, tc := range map[string]struct {
		reason string
		source func(namespace string) source
		want   int
	}{
		"PartOf":    {"It is the same.", func(string) source { return source{PartOf: "shop"} }, 1},
		"Instance":  {"It is the same.", func(string) source { return source{Instance: "shop"} }, 1},
		"Helm":      {ofTheApplication, func(ns string) source { return source{HelmRelease: release(ns)} }, 1},
		"Kustomize": {ofTheApplication, func(ns string) source { return source{FluxKustomization: release(ns)} }, 1},
		"Flux":      {ofTheApplication, func(ns string) source { return source{FluxHelmRelease: release(ns)} }, 1},
		"Object":    {ofTheApplication, func(ns string) source { return source{Object: object(ns)} }, 1},
		"Argo":      {"No namespace is that of Argo CD.", func(ns string) source { return source{ArgoApplication: argo(ns)} }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			kind := appsv1alpha1.DiscoveredKind{Version: "v1", Kind: "ConfigMap"}
			d := &appsv1alpha1.Discovery{
				Sources: []source{tc.source(""), tc.source("ns"), tc.source(""), tc.source("ns")},
				Kinds:   []appsv1alpha1.DiscoveredKind{kind, kind}, Namespaces: []string{"a"},
			}
			got := Distinct(d, "ns")
			if len(got.Sources) != tc.want || len(got.Kinds) != 1 || len(got.Namespaces) != 1 || len(d.Sources) != 4 {
				t.Errorf("%s Want %d sources and one kind, got %+v of %+v", tc.reason, tc.want, got, d)
			}
		})
	}
	all := &appsv1alpha1.Discovery{Sources: []source{
		{PartOf: "shop"}, {Instance: "shop"}, {HelmRelease: release("")}, {FluxKustomization: release("")}, {FluxHelmRelease: release("")},
		{ArgoApplication: argo("")}, {Object: object("")}, {PartOf: "db"}, {HelmRelease: release("other")},
	}}
	if diff := cmp.Diff(all, Distinct(all, "ns")); diff != "" {
		t.Errorf("want those that differ to stay, in their order: -want +got\n%s", diff)
	}
}
