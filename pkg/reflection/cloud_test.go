// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/crdvalidation"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// TestAnotherCloud adds a cloud: with its entry in the table of clouds, its functions and its lines in the policies, a
// cluster is observed and reflected, and nothing of it can be taken over. See cloud_toy_test.go.
//
//nolint:paralleltest // It changes the table of clouds.
func TestAnotherCloud(t *testing.T) {
	reflection.AddToy(t)
	imp := reflection.Import{
		Namespace: "team-a", Name: "prod", UID: "0b8e7a52", Labels: map[string]string{"fleet.masthead.dev/import-uid": "0b8e7a52"},
		Cloud: reflection.Toy, ClusterName: "Shop", Place: "Attic", DiscoverNodePools: true, Paused: true,
		ConnectionSecretName: "prod-connection",
	}
	want, err := reflection.Wanted(imp, served(reflection.Toy, true, false), reflection.Observed{})
	if err != nil || len(want.Resources) != 1 || len(want.Unserved) > 0 {
		t.Fatalf("Wanted(...): want one resource, got %v, %v", want, err)
	}
	mr := want.Resources[0]
	checkObserveOnly(t, mr, imp)
	if _, err := reflection.Read(imp, reflection.Observed{Resources: want.Resources}); err == nil {
		t.Error("want nothing read before anything is observed")
	}
	mr.Object["status"] = map[string]any{"atProvider": map[string]any{
		"uuid": "7f1c", "endpoint": "https://shop.example.org", "version": "v1.31.2",
		"pools": []any{map[string]any{"name": "Blue", "size": int64(2)}, map[string]any{"name": "Green", "size": int64(0)}},
	}}
	facts, err := reflection.Read(imp, reflection.Observed{Resources: want.Resources})
	if err != nil || facts.ID != "7f1c" || !facts.NodePoolsComplete {
		t.Fatalf("Read(...): got %+v, %v", facts, err)
	}
	hub := hubWithToy(t)
	reflected, err := reflection.Reflect(imp, facts, hub.schemas)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range reflected.Objects {
		kinds = append(kinds, o.Object.GetKind())
		checkReflected(t, hub, o, false)
		if !imp.Makes(o.Object) {
			t.Errorf("%s %q does not count as the import's", o.Object.GetKind(), o.Object.GetName())
		}
	}
	if diff := cmp.Diff([]string{
		"ToyCluster", "ToyControlPlane", "ToyMachinePool", "ToyMachinePool", "Cluster", "MachinePool", "MachinePool",
	}, kinds); diff != "" {
		t.Errorf("reflected kinds: -want, +got:\n%s", diff)
	}
	checkToyOwnership(t, imp, mr)
}

// checkToyOwnership checks that the questions of the importer are answered for the cloud.
func checkToyOwnership(t *testing.T, imp reflection.Import, mr *unstructured.Unstructured) {
	t.Helper()
	other := imp
	other.ClusterName, other.Place = "SHOP", "attic"
	if !other.Names(mr) || !other.NamesSame(imp) || !other.IsAt(mr) {
		t.Error("want the managed resource to be the cluster of the import, in any case of its letters")
	}
	if other.ObservedID(mr) != "7f1c" || !imp.Makes(mr) || !reflection.IsCluster(mr) {
		t.Error("want the managed resource to be the import's own, with the ID that its provider reports")
	}
	other.Place = "Cellar"
	if other.NamesSame(imp) || other.IsAt(mr) {
		t.Error("want no other place taken for that of the import")
	}
	if err := other.Validate(); err != nil {
		t.Error(err)
	}
	other.Place = "a place"
	if err := other.Validate(); err == nil || !strings.Contains(err.Error(), "location of Toy") {
		t.Errorf("want a place refused that is none, got %v", err)
	}
	if !slices.Contains(reflection.NodeLabels(), "toy.example.org/pool") {
		t.Error("want the label read that names the pool of a Node")
	}
}

// hubWithToy is a hub that serves the kinds of the cloud's provider.
func hubWithToy(t *testing.T) installed {
	t.Helper()
	hub := readHub(t)
	crds := []*apiextensionsv1.CustomResourceDefinition{
		toyCRD("ToyCluster", "credentialsRef", objectWith(properties{"name": {Type: "string"}, "namespace": {Type: "string"}})),
		toyCRD("ToyControlPlane", "version", apiextensionsv1.JSONSchemaProps{Type: "string"}),
		toyCRD("ToyMachinePool", "size", apiextensionsv1.JSONSchemaProps{Type: "integer"}),
	}
	for _, kind := range reflection.CoreKinds() {
		crds = append(crds, hub.crds[kind])
	}
	validators, err := crdvalidation.New(crds...)
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := newSchemas(crds)
	if err != nil {
		t.Fatal(err)
	}
	return installed{schemas: schemas, validators: validators}
}

type properties map[string]apiextensionsv1.JSONSchemaProps

func objectWith(p properties) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: p}
}

// toyCRD has one field in its spec.
func toyCRD(kind, field string, value apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	initialization := objectWith(properties{"provisioned": {Type: "boolean"}, "controlPlaneInitialized": {Type: "boolean"}})
	whole := objectWith(properties{
		"spec": objectWith(properties{field: value}), "status": objectWith(properties{"initialization": initialization}),
	})
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Group, crd.Spec.Names.Kind = "infrastructure.cluster.x-k8s.io", kind
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
	}}
	return crd
}

// TestPoliciesCoverEveryCloud: a kind that no policy covers could be made to act on the cluster. A cloud is not added
// before its kinds are in config/policies.
//
//nolint:paralleltest // It changes the table of clouds.
func TestPoliciesCoverEveryCloud(t *testing.T) {
	reflection.AddToy(t)
	policies, err := takeover.Policies()
	if err != nil {
		t.Fatal(err)
	}
	for _, cloud := range reflection.Clouds() {
		var want []string
		if cloud == reflection.Toy {
			want = []string{
				"identifiers of Cluster.kubernetes.toy.upbound.io", "managers of Cluster.kubernetes.toy.m.upbound.io",
				"Cluster.kubernetes.toy.upbound.io", "Cluster.kubernetes.toy.m.upbound.io",
				"ToyCluster.infrastructure.cluster.x-k8s.io", "ToyControlPlane.infrastructure.cluster.x-k8s.io",
				"ToyMachinePool.infrastructure.cluster.x-k8s.io",
			}
		}
		if diff := cmp.Diff(want, uncovered(policies, cloud)); diff != "" {
			t.Errorf("what no policy covers of %s: -want, +got:\n%s", cloud, diff)
		}
	}
	addToy(t, policies)
	if left := uncovered(policies, reflection.Toy); len(left) > 0 {
		t.Errorf("with its lines in the policies, want all covered of the cloud, got %q", left)
	}
}

// uncovered lists what the policies lack of a cloud.
func uncovered(policies []takeover.Policy, cloud reflection.Cloud) []string {
	var missing []string
	for i, kind := range reflection.Kinds(cloud) {
		if !isNamed(policies, "identifiers", kind.Legacy()) {
			missing = append(missing, "identifiers of "+kind.Legacy().String())
		}
		if i == 0 && !isNamed(policies, "names", kind.Namespaced()) {
			missing = append(missing, "managers of "+kind.Namespaced().String())
		}
		for _, gk := range []schema.GroupKind{kind.Legacy(), kind.Namespaced()} {
			if !isMatched(policies, gk) {
				missing = append(missing, gk.String())
			}
		}
	}
	for _, kind := range reflection.ProviderKinds(cloud) {
		if !isMatched(policies, kind) {
			missing = append(missing, kind.String())
		}
	}
	return missing
}

// isNamed reports whether a variable of a policy lists a kind.
func isNamed(policies []takeover.Policy, variable string, gk schema.GroupKind) bool {
	return slices.ContainsFunc(policies, func(p takeover.Policy) bool {
		for _, v := range p.Policy.Spec.Variables {
			if v.Name == variable && strings.Contains(v.Expression, "'"+gk.Group+"/"+gk.Kind+"':") {
				return true
			}
		}
		return false
	})
}

// isMatched reports whether a policy applies to objects of a kind that have the label of an import.
func isMatched(policies []takeover.Policy, gk schema.GroupKind) bool {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return slices.ContainsFunc(policies, func(p takeover.Policy) bool {
		constraints := p.Policy.Spec.MatchConstraints
		exists := func(r metav1.LabelSelectorRequirement) bool { return r.Operator == metav1.LabelSelectorOpExists }
		if !slices.ContainsFunc(constraints.ObjectSelector.MatchExpressions, exists) {
			return false
		}
		for _, rule := range constraints.ResourceRules {
			covers := slices.Contains(rule.Resources, "*") || slices.Contains(rule.Resources, plural.Resource)
			if covers && slices.Contains(rule.APIGroups, gk.Group) {
				return true
			}
		}
		return false
	})
}

// addToy adds the lines of the cloud to the policies: its groups, its resources and what identifies its clusters.
func addToy(t *testing.T, policies []takeover.Policy) {
	t.Helper()
	add := map[string]struct {
		groups, resources  []string
		variable, listedAs string
	}{
		"managed-resources.imports.masthead.dev": {
			groups:   []string{"kubernetes.toy.upbound.io", "kubernetes.toy.m.upbound.io"},
			variable: "identifiers", listedAs: "'kubernetes.toy.upbound.io/Cluster': ['location'],",
		},
		"reflections.imports.masthead.dev": {
			resources: []string{"toyclusters", "toycontrolplanes", "toymachinepools"},
			variable:  "identityField", listedAs: "'ToyCluster': 'credentialsRef',",
		},
		"managers.imports.masthead.dev": {
			variable: "names", listedAs: "'kubernetes.toy.m.upbound.io/Cluster': [string(variables.externalName)],",
		},
	}
	for _, p := range policies {
		lines, spec := add[p.Policy.Name], &p.Policy.Spec
		rule := &spec.MatchConstraints.ResourceRules[0]
		rule.APIGroups, rule.Resources = append(rule.APIGroups, lines.groups...), append(rule.Resources, lines.resources...)
		for i, v := range spec.Variables {
			if v.Name == lines.variable {
				spec.Variables[i].Expression = strings.Replace(v.Expression, "{", "{"+lines.listedAs, 1)
			}
		}
	}
}
