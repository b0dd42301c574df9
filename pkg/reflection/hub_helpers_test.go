// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/crdvalidation"
	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// installed is what a hub has installed. It is read once, because the CRDs have megabytes.
type installed struct {
	crds       map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	schemas    reflection.Schemas
	validators crdvalidation.Validators
}

var readInstalled = sync.OnceValues(func() (installed, error) {
	crds, err := providercrds.Load(context.Background(), providercrds.All()...)
	if err != nil {
		return installed{}, err
	}
	validators, err := crdvalidation.New(crds...)
	if err != nil {
		return installed{}, err
	}
	out := installed{crds: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}, validators: validators}
	if out.schemas, err = newSchemas(crds); err != nil {
		return installed{}, err
	}
	for _, crd := range crds {
		out.crds[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd
	}
	return out, nil
})

// newSchemas are those of some CRDs.
func newSchemas(crds []*apiextensionsv1.CustomResourceDefinition) (reflection.Schemas, error) {
	out := reflection.Schemas{}
	for _, crd := range crds {
		s, err := reflection.NewSchema(crd)
		if err != nil {
			return nil, err
		}
		out[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = s
	}
	return out, nil
}

func readHub(tb testing.TB) installed {
	tb.Helper()
	hub, err := readInstalled()
	if err != nil {
		tb.Fatal(err)
	}
	return hub
}

func (h installed) validate(tb testing.TB, object *unstructured.Unstructured) {
	tb.Helper()
	if err := h.validators.Validate(tb.Context(), object); err != nil {
		tb.Error(err)
	}
}

// served returns the kinds of a cloud as a hub serves them: in the namespaced groups, in the legacy ones, or in both.
func served(cloud reflection.Cloud, namespaced, legacy bool) reflection.Schemas {
	out := reflection.Schemas{}
	for _, kind := range append(reflection.Kinds(cloud), reflection.EKSFargateProfile) {
		if namespaced {
			out[kind.Namespaced()] = reflection.Schema{Version: "v1beta1"}
		}
		if legacy {
			out[kind.Legacy()] = reflection.Schema{Version: "v1beta1"}
		}
	}
	return out
}

func loadFixture(tb testing.TB, name string) layouts.Fixture {
	tb.Helper()
	f, err := layouts.Load(name)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// newImport is an import of the fixture's cluster that discovers all it can.
func newImport(f layouts.Fixture) reflection.Import {
	imp := reflection.Import{
		Namespace: "team-a", Name: "prod", UID: "0b8e7a52-6a0c-4d2c-9d8b-6d1b1f3f6d11",
		Cloud: reflection.Cloud(f.Cloud), ClusterName: f.ClusterName, Place: f.Place,
		Labels:            map[string]string{"fleet.masthead.dev/import-uid": "0b8e7a52-6a0c-4d2c-9d8b-6d1b1f3f6d11"},
		ClusterLabels:     map[string]string{"fleet.masthead.dev/enroll": "readonly", "fleet.masthead.dev/imported": "true"},
		DiscoverNodePools: true, ConnectionSecretName: "prod-connection", Paused: true,
	}
	if imp.Cloud == reflection.AKS {
		imp.AzureRegion = "westeurope"
	}
	return imp
}

// importOfAll is an import that names everything of the fixture.
func importOfAll(f layouts.Fixture) reflection.Import {
	imp := newImport(f)
	for _, r := range f.Resources {
		if r.Kind == "RouteTable" {
			imp.Subnets = append(imp.Subnets, reflection.SubnetHint{ID: "subnet-0123456789abcdef0", RouteTableID: r.ExternalName})
		}
		if r.Kind == "FargateProfile" {
			imp.FargateProfiles = append(imp.FargateProfiles, r.ExternalName)
		}
		if r.Kind == "NodeGroup" || r.Kind == "KubernetesClusterNodePool" {
			imp.NodePools = append(imp.NodePools, r.ExternalName)
		}
	}
	return imp
}

// observe acts as the providers: it fills status.atProvider of the wanted resources, again and again, until no new ones
// are wanted.
func (h installed) observe(tb testing.TB, imp reflection.Import, served reflection.Schemas, f layouts.Fixture, nodesKnown bool) (reflection.Observed, reflection.Want) {
	tb.Helper()
	observed := reflection.Observed{NodesKnown: nodesKnown}
	if nodesKnown {
		for _, n := range f.Nodes {
			observed.Nodes = append(observed.Nodes, reflection.Node{Labels: n.Labels, KubeletVersion: n.KubeletVersion, Ready: true})
		}
	}
	for range 5 {
		want, err := reflection.Wanted(imp, served, observed)
		if err != nil {
			tb.Fatal(err)
		}
		if len(want.Resources) == len(observed.Resources) {
			return observed, want
		}
		observed.Resources = nil
		for _, mr := range want.Resources {
			observed.Resources = append(observed.Resources, h.fill(mr.DeepCopy(), f))
		}
	}
	tb.Fatal("what is wanted never settles")
	return observed, reflection.Want{}
}

func (h installed) fill(mr *unstructured.Unstructured, f layouts.Fixture) *unstructured.Unstructured {
	gvk := mr.GroupVersionKind()
	at := slices.IndexFunc(f.Resources, func(r layouts.Resource) bool {
		kind := reflection.Kind{Family: r.Family, Provider: providerOf[f.Cloud], Kind: r.Kind}
		return kind.Is(gvk.GroupKind()) && r.ExternalName == mr.GetAnnotations()[reflection.ExternalNameAnnotation]
	})
	if at < 0 {
		return mr
	}
	mr.Object["status"] = map[string]any{
		"atProvider": layouts.Shape(f.Resources[at].AtProvider, h.crds[gvk.GroupKind()], gvk.Version),
		"conditions": []any{
			map[string]any{"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"},
			map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-01-01T00:00:00Z"},
		},
	}
	return mr
}

var providerOf = map[string]string{"EKS": "aws", "AKS": "azure", "GKE": "gcp"}

// reflect runs all steps of an import of the fixture's cluster.
func (h installed) reflect(tb testing.TB, imp reflection.Import, served reflection.Schemas, f layouts.Fixture) (reflection.Facts, reflection.Reflection) {
	tb.Helper()
	observed, _ := h.observe(tb, imp, served, f, true)
	facts, err := reflection.Read(imp, h.schemas, observed)
	if err != nil {
		tb.Fatal(err)
	}
	out, err := reflection.Reflect(imp, facts, h.schemas)
	if err != nil {
		tb.Fatal(err)
	}
	return facts, out
}

// object returns the object of a kind and name, or fails the test.
func object(tb testing.TB, r reflection.Reflection, kind, name string) reflection.Object {
	tb.Helper()
	for _, o := range r.Objects {
		if o.Object.GetKind() == kind && o.Object.GetName() == name {
			return o
		}
	}
	tb.Fatalf("no %s %q among the reflected objects", kind, name)
	return reflection.Object{}
}

// lossyFields are the entries as "<object> <field>", for those of the object's kind.
func lossyFields(r reflection.Reflection) []string {
	var out []string
	for _, l := range r.Lossy {
		out = append(out, l.Object+" "+l.Field)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
