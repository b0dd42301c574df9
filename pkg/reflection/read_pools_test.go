// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

func poolNames(facts reflection.Facts) []string {
	var out []string
	for _, p := range facts.NodePools {
		out = append(out, p.Name)
	}
	return out
}

// markGone makes the provider report that a node pool does not exist any more. Its last observation stays.
func markGone(t *testing.T, observed reflection.Observed, name string) {
	t.Helper()
	for _, mr := range observed.Resources {
		if mr.GetAnnotations()[reflection.ExternalNameAnnotation] != name {
			continue
		}
		conditions := []any{map[string]any{
			"type": "Synced", "status": "False", "reason": "ReconcileError", "lastTransitionTime": "2026-01-01T00:00:00Z",
			"message": "observe failed: external resource does not exist",
		}}
		if err := unstructured.SetNestedSlice(mr.Object, conditions, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
	}
}

func wants(t *testing.T, imp reflection.Import, served reflection.Schemas, observed reflection.Observed, pool string) bool {
	t.Helper()
	want, err := reflection.Wanted(imp, served, observed)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(want.Resources, func(mr *unstructured.Unstructured) bool {
		return mr.GetKind() == "NodeGroup" && mr.GetAnnotations()[reflection.ExternalNameAnnotation] == pool
	})
}

func TestNodePoolsAreAUnion(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	for _, c := range []struct {
		reason     string
		change     func(*reflection.Import, *layouts.Fixture)
		nodesKnown bool
		want       []string
		pending    []string
		complete   bool
	}{
		{"Node labels show what has Nodes", func(*reflection.Import, *layouts.Fixture) {}, true, []string{"general", "hardened"}, nil, true},
		{
			"the user adds what is scaled to zero", func(i *reflection.Import, _ *layouts.Fixture) { i.NodePools = []string{"Spot_Batch"} },
			true,
			[]string{"Spot_Batch", "general", "hardened"},
			nil,
			true,
		},
		{
			"a list is the whole list", func(i *reflection.Import, _ *layouts.Fixture) {
				i.NodePools, i.DiscoverNodePools = []string{"hardened"}, false
			},
			true,
			[]string{"hardened"},
			nil,
			true,
		},
		{"without the Nodes nothing is complete", func(*reflection.Import, *layouts.Fixture) {}, false, nil, nil, false},
		{
			"a pool that is not observed yet is pending", func(i *reflection.Import, _ *layouts.Fixture) { i.NodePools = []string{"fresh"} },
			true,
			[]string{"general", "hardened"},
			[]string{"fresh"},
			false,
		},
		{"a Node label that is no name is not looked up", func(_ *reflection.Import, f *layouts.Fixture) {
			f.Nodes = append(f.Nodes, layouts.Node{Labels: map[string]string{"eks.amazonaws.com/nodegroup": "x:y"}})
		}, true, []string{"general", "hardened"}, nil, true},
	} {
		f := loadFixture(t, "eks-standard")
		imp := newImport(f)
		c.change(&imp, &f)
		observed, _ := hub.observe(t, imp, served(reflection.EKS, true, false), f, c.nodesKnown)
		facts, err := reflection.Read(imp, hub.schemas, observed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, poolNames(facts)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", c.reason, diff)
		}
		if diff := cmp.Diff(c.pending, facts.PendingNodePools); diff != "" || facts.NodePoolsComplete != c.complete {
			t.Errorf("%s: pending: -want, +got:\n%s complete %v, want %v", c.reason, diff, facts.NodePoolsComplete, c.complete)
		}
	}
}

func TestNodePoolsThatGo(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-standard")
	imp, groups := newImport(f), served(reflection.EKS, true, false)
	observed, _ := hub.observe(t, imp, groups, f, true)

	observed.Nodes = nil
	if !wants(t, imp, groups, observed, "general") {
		t.Error("a pool that was observed is not wanted any more once it has no Nodes: it may be scaled to zero")
	}
	facts, err := reflection.Read(imp, hub.schemas, observed)
	if err != nil || !slices.Contains(poolNames(facts), "general") {
		t.Errorf("a pool without Nodes is not read: %v, %v", poolNames(facts), err)
	}

	markGone(t, observed, "general")
	if wants(t, imp, groups, observed, "general") {
		t.Error("a pool that does not exist is still wanted")
	}
	facts, err = reflection.Read(imp, hub.schemas, observed)
	if err != nil || slices.Contains(poolNames(facts), "general") {
		t.Errorf("a pool that does not exist is read out of the old observation: %v, %v", poolNames(facts), err)
	}

	imp.NodePools = []string{"general"}
	facts, err = reflection.Read(imp, hub.schemas, observed)
	if err != nil || !slices.Contains(facts.GoneNodePools, "general") || !wants(t, imp, groups, observed, "general") {
		t.Errorf("a pool that the user names is not reported as gone: %v, %v", facts.GoneNodePools, err)
	}
}

func TestOwnerTags(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	for reason, c := range map[string]struct {
		tags               map[string]any
		clusterAPI, others int
	}{
		"no manager":                    {map[string]any{"team": "shop"}, 0, 0},
		"a Cluster API elsewhere":       {map[string]any{"sigs.k8s.io/cluster-api-provider-aws/cluster/x": "owned"}, 1, 0},
		"a guest of a Cluster API":      {map[string]any{"sigs.k8s.io/cluster-api-provider-aws/cluster/x": "shared"}, 0, 0},
		"CAPZ":                          {map[string]any{"sigs.k8s.io_cluster-api-provider-azure_cluster_x": "owned"}, 1, 0},
		"CAPG":                          {map[string]any{"capg-cluster-x": "owned"}, 1, 0},
		"Kubernetes' mark of the owner": {map[string]any{"kubernetes.io/cluster/shop-prod": "owned"}, 0, 1},
		"a mark of a guest":             {map[string]any{"kubernetes.io/cluster/shop-prod": "shared"}, 0, 0},
		"a Crossplane that creates": {
			map[string]any{"crossplane-name": "shop", "crossplane-kind": "cluster.eks.aws.upbound.io"}, 0, 1,
		},
		"tags never become labels of ours":  {map[string]any{"fleet.masthead.dev/enroll": "admin"}, 0, 0},
		"a value that is no text is no tag": {map[string]any{"kubernetes.io/cluster/shop-prod": map[string]any{}}, 0, 0},
	} {
		f := loadFixture(t, "eks-standard")
		f.Resources[0].AtProvider["tags"] = c.tags
		delete(f.Resources[0].AtProvider, "tagsAll")
		imp := newImport(f)
		facts, reflected := hub.reflect(t, imp, served(reflection.EKS, true, false), f)
		if len(facts.ClusterAPITags) != c.clusterAPI || len(facts.OwnerTags) != c.others {
			t.Errorf("%s: got %v of Cluster API, and %v", reason, facts.ClusterAPITags, facts.OwnerTags)
		}
		labels := object(t, reflected, "Cluster", "prod").Object.GetLabels()
		if labels["fleet.masthead.dev/enroll"] != "readonly" || len(labels) != 3 {
			t.Errorf("%s: labels of the Cluster: %v", reason, labels)
		}
	}
}

func TestReflectNeedsTheInstalledKinds(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-standard")
	imp := newImport(f)
	observed, _ := hub.observe(t, imp, served(reflection.EKS, true, false), f, true)
	facts, err := reflection.Read(imp, hub.schemas, observed)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range reflection.ReflectedKinds(reflection.EKS) {
		schemas := reflection.Schemas{}
		for gvk, s := range hub.schemas {
			if gvk != kind {
				schemas[gvk] = s
			}
		}
		if _, err := reflection.Reflect(imp, facts, schemas); err == nil {
			t.Errorf("the cluster is reflected without %s", kind.Kind)
		}
	}
}

// TestValuesThatTheInstalledKindDoesNotKnow shows that enums are read from the installed CRD: the node pool has values
// that are newer than the CRD.
func TestValuesThatTheInstalledKindDoesNotKnow(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-standard")
	for _, r := range f.Resources {
		if r.ExternalName == "general" {
			r.AtProvider["amiType"] = "WINDOWS_CORE_2025_x86_64"
			r.AtProvider["capacityType"] = "CAPACITY_BLOCK"
		}
	}
	_, reflected := hub.reflect(t, newImport(f), served(reflection.EKS, true, false), f)
	pool := object(t, reflected, "AWSManagedMachinePool", "prod-general-546c23de223c").Object
	spec, _ := pool.Object["spec"].(map[string]any)
	if _, ok := spec["capacityType"]; ok || spec["amiType"] != "CUSTOM" {
		t.Errorf("capacityType %v, amiType %v", spec["capacityType"], spec["amiType"])
	}
	if got := pool.GetAnnotations()[reflection.ObservedImageTypeAnnotation]; got != "WINDOWS_CORE_2025_x86_64" {
		t.Errorf("the image type that was observed: got %q", got)
	}
	for field, observed := range map[string]string{"spec.amiType": "WINDOWS_CORE_2025_x86_64", "spec.capacityType": "CAPACITY_BLOCK"} {
		if !slices.ContainsFunc(reflected.Lossy, func(l reflection.Lossy) bool {
			return l.Field == field && l.Observed == observed && l.Default != ""
		}) {
			t.Errorf("%s is not reported with what was observed and what stands there", field)
		}
	}
}
