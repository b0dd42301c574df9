// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// each runs the test for each fixture, in each shape of group.
func each(t *testing.T, run func(t *testing.T, f layouts.Fixture, served reflection.Schemas)) {
	t.Helper()
	for _, name := range layouts.Names() {
		f := loadFixture(t, name)
		t.Run(name+"/legacy", func(t *testing.T) { t.Parallel(); run(t, f, served(reflection.Cloud(f.Cloud), false, true)) })
		t.Run(name+"/namespaced", func(t *testing.T) { t.Parallel(); run(t, f, served(reflection.Cloud(f.Cloud), true, true)) })
	}
}

// identifiers are all that forProvider may hold.
var identifiers = []string{"region", "clusterName", "refreshPeriod", "resourceGroupName", "kubernetesClusterId", "location", "cluster"}

func TestManagedResourcesObserveOnly(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	each(t, func(t *testing.T, f layouts.Fixture, served reflection.Schemas) {
		t.Helper()
		imp := newImport(f)
		_, want := hub.observe(t, imp, served, f, true)
		seen := map[string]bool{}
		for _, mr := range want.Resources {
			hub.validate(t, mr)
			checkObserveOnly(t, mr, imp)
			checkShape(t, mr)
			if !imp.Makes(mr) {
				t.Errorf("the import does not know %s %q as its own", mr.GetKind(), mr.GetName())
			}
			key := mr.GroupVersionKind().String() + mr.GetName()
			if seen[key] || len(validation.IsDNS1123Label(mr.GetName())) > 0 {
				t.Errorf("%s is not a unique DNS label", key)
			}
			seen[key] = true
		}
		if len(want.Unserved) > 0 {
			t.Errorf("unserved kinds: %v", want.Unserved)
		}
	})
}

func checkObserveOnly(t *testing.T, mr *unstructured.Unstructured, imp reflection.Import) {
	t.Helper()
	spec, _ := mr.Object["spec"].(map[string]any)
	policies := []any{"Observe"}
	if mr.GetKind() == "ClusterAuth" {
		policies = []any{"*"}
	} else if mr.GetAnnotations()[reflection.ExternalNameAnnotation] == "" {
		t.Errorf("%s %q has no external name: its provider would take its own", mr.GetKind(), mr.GetName())
	}
	if diff := cmp.Diff(policies, spec["managementPolicies"]); diff != "" {
		t.Errorf("%s %q: management policies: -want, +got:\n%s", mr.GetKind(), mr.GetName(), diff)
	}
	if _, ok := spec["initProvider"]; ok {
		t.Errorf("%s %q has an initProvider", mr.GetKind(), mr.GetName())
	}
	forProvider, _ := spec["forProvider"].(map[string]any)
	for key := range forProvider {
		if !slices.Contains(identifiers, key) {
			t.Errorf("%s %q: forProvider has %q, which is no identifier", mr.GetKind(), mr.GetName(), key)
		}
	}
	if (mr.GetNamespace() == "") != (spec["deletionPolicy"] == "Orphan") {
		t.Errorf("%s %q: deletionPolicy %v in namespace %q", mr.GetKind(), mr.GetName(), spec["deletionPolicy"], mr.GetNamespace())
	}
	if mr.GetAnnotations()[reflection.ManagedPausedAnnotation] != "true" {
		t.Errorf("%s %q is not born paused", mr.GetKind(), mr.GetName())
	}
	if diff := cmp.Diff(imp.Labels, mr.GetLabels()); diff != "" {
		t.Errorf("%s %q: labels: -want, +got:\n%s", mr.GetKind(), mr.GetName(), diff)
	}
}

// checkShape compares the objects that an import creates with those of internal/test/imported. With those, the random
// histories of test/takeover show that nothing in the cloud is changed, so that is true of an import's objects as well.
// ClusterAuth is left out: its controller has no method that changes anything.
func checkShape(t *testing.T, mr *unstructured.Unstructured) {
	t.Helper()
	gvk := mr.GroupVersionKind()
	if gvk.Kind == "ClusterAuth" {
		return
	}
	same, err := imported.Object(gvk.GroupKind(), gvk.Version, mr.GetNamespace(), mr.GetName())
	if err != nil {
		t.Error(err)
		return
	}
	if diff := cmp.Diff(managedShape(same), managedShape(mr)); diff != "" {
		t.Errorf("%s %q is not as in internal/test/imported: -want, +got:\n%s", gvk.Kind, mr.GetName(), diff)
	}
}

// managedShape is the part of a managed resource that decides which of a provider's methods are called, and with what.
// Where the connection details are written does not matter.
func managedShape(mr *unstructured.Unstructured) map[string]any {
	spec, _ := mr.Object["spec"].(map[string]any)
	forProvider, _ := spec["forProvider"].(map[string]any)
	fields := slices.Sorted(maps.Keys(spec))
	return map[string]any{
		"fields":      slices.DeleteFunc(fields, func(f string) bool { return f == "writeConnectionSecretToRef" }),
		"policies":    spec["managementPolicies"],
		"deletion":    spec["deletionPolicy"],
		"forProvider": slices.Sorted(maps.Keys(forProvider)),
		"named":       mr.GetAnnotations()[reflection.ExternalNameAnnotation] != "",
	}
}

// TestFixturesAreComplete validates every fixture with the schema of its kind: a field that the real kind does not have
// would be dropped, and a test would then prove nothing.
func TestFixturesAreComplete(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	each(t, func(t *testing.T, f layouts.Fixture, served reflection.Schemas) {
		t.Helper()
		imp := importOfAll(f)
		observed, _ := hub.observe(t, imp, served, f, true)
		filled := 0
		for _, mr := range observed.Resources {
			if !f.NewerProvider {
				hub.validate(t, mr)
			}
			if _, ok := mr.Object["status"]; ok {
				filled++
			}
		}
		if filled != len(f.Resources) {
			t.Errorf("%d of the fixture's %d resources are observed: the others have no use", filled, len(f.Resources))
		}
	})
}

// TestReflectionIsSafe checks every reflection against the contracts that keep each provider from acting on it.
func TestReflectionIsSafe(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	each(t, func(t *testing.T, f layouts.Fixture, served reflection.Schemas) {
		t.Helper()
		for _, strict := range []bool{false, true} {
			imp := newImport(f)
			imp.StrictPause = strict
			_, reflected := hub.reflect(t, imp, served, f)
			names := map[string]bool{}
			for _, o := range reflected.Objects {
				checkReflected(t, hub, o, strict)
				if !imp.Makes(o.Object) {
					t.Errorf("the import does not know %s %q as its own", o.Object.GetKind(), o.Object.GetName())
				}
				key := o.Object.GetKind() + "/" + o.Object.GetName()
				if names[key] || len(validation.IsDNS1123Label(o.Object.GetName())) > 0 {
					t.Errorf("%s is not a unique DNS label", key)
				}
				names[key] = true
			}
			_, again := hub.reflect(t, imp, served, f)
			if diff := cmp.Diff(reflected, again); diff != "" {
				t.Errorf("two reflections of the same facts differ: %s", diff)
			}
		}
	})
}

func checkReflected(t *testing.T, hub installed, o reflection.Object, strict bool) {
	t.Helper()
	label := o.Object.GetKind() + "/" + o.Object.GetName()
	whole := o.Object.DeepCopy()
	if o.Status != nil {
		if len(o.Status.Object) != 4 || o.Status.GetName() != o.Object.GetName() {
			t.Errorf("%s: its status holds more than the status: %v", label, o.Status.Object)
		}
		whole.Object["status"] = o.Status.Object["status"]
	}
	hub.validate(t, whole)
	if len(o.Object.GetFinalizers()) > 0 || len(o.Object.GetOwnerReferences()) > 0 {
		t.Errorf("%s has a finalizer or an owner", label)
	}
	annotations := o.Object.GetAnnotations()
	_, paused := annotations["cluster.x-k8s.io/paused"]
	switch o.Role {
	case reflection.RoleIdentity:
		if _, ok, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", "allowedNamespaces"); ok {
			t.Errorf("%s allows namespaces", label)
		}
	case reflection.RoleCluster:
		specPaused, _, _ := unstructured.NestedBool(o.Object.Object, "spec", "paused")
		if specPaused != strict || (o.Status != nil) != strict || paused {
			t.Errorf("%s: strict pause is %v; spec.paused %v, status %v, annotation %v", label, strict, specPaused, o.Status, paused)
		}
		if annotations["cluster.x-k8s.io/managed-by"] != reflection.ManagedBy {
			t.Errorf("%s is not annotated as managed elsewhere", label)
		}
	default:
		if annotations["cluster.x-k8s.io/managed-by"] != reflection.ManagedBy || !paused {
			t.Errorf("%s is not annotated as managed elsewhere and paused: %v", label, annotations)
		}
		if o.Status == nil {
			t.Errorf("%s has no status", label)
		}
	}
	if _, ok, _ := unstructured.NestedFieldNoCopy(o.Object.Object, "spec", "providerIDList"); ok {
		t.Errorf("%s has a providerIDList: Cluster API core would write Nodes", label)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		change func(*reflection.Import)
		want   string
	}{
		{"nothing is wrong", func(*reflection.Import) {}, ""},
		{"an import without a UID cannot name its objects", func(i *reflection.Import) { i.UID = "" }, "needs a namespace, a name and a UID"},
		{"an unknown cloud has no rules", func(i *reflection.Import) { i.Cloud = "OKE" }, "unknown cloud"},
		{"the Cluster's name must be a label", func(i *reflection.Import) { i.ReflectedName = "a.b" }, "DNS label"},
		{"a region is no path", func(i *reflection.Import) { i.Place = "eu-central-1/.." }, "not a region of AWS"},
		{"a pool with a colon would be another cluster's", func(i *reflection.Import) { i.NodePools = []string{"a:b"} }, "not the name of a node pool"},
		{"a hint must be an identifier", func(i *reflection.Import) { i.Subnets = []reflection.SubnetHint{{ID: "10.0.0.0/8"}} }, "not identifiers of AWS"},
		{"too many pools", func(i *reflection.Import) { i.NodePools = make([]string, reflection.MaxNodePools+1) }, "at most"},
	} {
		imp := newImport(loadFixture(t, "eks-standard"))
		c.change(&imp)
		err := imp.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got error %v, want one with %q", c.reason, err, c.want)
		}
	}
}

func TestPoolName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 60)
	names := map[string]string{}
	for _, c := range []struct{ reason, cluster, pool, want string }{
		{"a DNS label has a hash", "prod", "blue", "prod-blue-"},
		{"a pool whose name joins with the cluster's to that of another cluster's pool", "prod", "eu-workers", "prod-eu-workers-"},
		{"that other pool: it takes no name from the first cluster", "prod-eu", "workers", "prod-eu-workers-"},
		{"capitals are lowered, and a hash keeps the name apart", "prod", "Blue", "prod-blue-"},
		{"an underscore is no part of a label", "prod", "blue_1", "prod-blue-1-"},
		{"the label with a hyphen is another pool", "prod", "blue-1", "prod-blue-1-"},
		{"a long name is cut, with a hash", long, "blue-1", long[:50] + "-"},
		{"another long name has another hash", long, "blue-2", long[:50] + "-"},
		{"a name of foreign letters", "prod", "ü", "prod-"},
	} {
		got := reflection.PoolName(c.cluster, c.pool)
		if !strings.HasPrefix(got, c.want) || len(validation.IsDNS1123Label(got)) > 0 {
			t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
		}
		if other, taken := names[got]; taken {
			t.Errorf("%s: %q is also the name of %s", c.reason, got, other)
		}
		names[got] = c.cluster + "/" + c.pool
	}
}

func TestManagedNamesOfOtherImportsDiffer(t *testing.T) {
	t.Parallel()
	base := reflection.Import{Namespace: "a-b", Name: "c", UID: "1"}
	names := map[string]string{}
	for reason, imp := range map[string]reflection.Import{
		"the import": base,
		"an import whose namespace and name join to the same": {Namespace: "a", Name: "b-c", UID: "1"},
		"an import of the same name, made again":              {Namespace: "a-b", Name: "c", UID: "2"},
		"a very long one":                                     {Namespace: strings.Repeat("n", 63), Name: strings.Repeat("m", 63), UID: "1"},
	} {
		for _, kind := range reflection.Kinds(reflection.EKS) {
			name := reflection.ManagedName(imp, kind, false, "x")
			if other, taken := names[name]; taken {
				t.Errorf("%s, %s: %q is also the name of %s", reason, kind, name, other)
			}
			if len(validation.IsDNS1123Label(name)) > 0 {
				t.Errorf("%s: %q is no DNS label", reason, name)
			}
			names[name] = fmt.Sprint(reason, kind)
		}
	}
}

// TestResourcesOfAnotherNamespaceAreNotRead: a tenant gives a managed resource of its own namespace the name that an
// import gives.
func TestResourcesOfAnotherNamespaceAreNotRead(t *testing.T) {
	t.Parallel()
	imp := reflection.Import{Namespace: "customers", Name: "shop", UID: "1", Cloud: reflection.EKS, Place: "eu-central-1", ClusterName: "prod"}
	for _, namespace := range []string{"customers", "tenant"} {
		mr := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
			"atProvider": map[string]any{"arn": "arn:aws:eks:eu-central-1:123456789012:cluster/prod", "endpoint": "https://cluster.example.org"},
		}}}
		mr.SetGroupVersionKind(reflection.EKSCluster.Namespaced().WithVersion("v1beta1"))
		mr.SetNamespace(namespace)
		mr.SetName(reflection.ManagedName(imp, reflection.EKSCluster, true, "prod"))
		mr.SetAnnotations(map[string]string{reflection.ExternalNameAnnotation: "prod"})
		_, err := reflection.Read(imp, nil, reflection.Observed{Resources: []*unstructured.Unstructured{mr}})
		if read := err == nil; read != (namespace == imp.Namespace) {
			t.Errorf("a managed resource in the namespace %q: read %v: %v", namespace, read, err)
		}
	}
}
