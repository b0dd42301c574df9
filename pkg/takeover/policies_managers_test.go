// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// importsOfEachCloud are specs of ClusterImports, with the managed resource for the cluster that another user could
// create.
func importsOfEachCloud() map[string]struct {
	spec        map[string]any
	kind        schema.GroupKind
	forProvider map[string]any
} {
	return map[string]struct {
		spec        map[string]any
		kind        schema.GroupKind
		forProvider map[string]any
	}{
		"eks": {
			map[string]any{"region": "eu-central-1", "clusterName": "prod", "nodeGroupNames": []any{"blue"}},
			schema.GroupKind{Group: "eks.aws.m.upbound.io", Kind: "Cluster"},
			// The CRD requires the other fields of a resource that may create.
			map[string]any{
				"region": "eu-central-1", "roleArn": "arn:aws:iam::000000000000:role/x", "vpcConfig": map[string]any{"subnetIds": []any{"subnet-0"}},
			},
		},
		"aks": {
			map[string]any{"resourceGroupName": "Shop", "clusterName": "Prod", "location": "westeurope"},
			schema.GroupKind{Group: "containerservice.azure.m.upbound.io", Kind: "KubernetesCluster"},
			map[string]any{"resourceGroupName": "shop", "location": "westeurope", "defaultNodePool": map[string]any{"name": "system"}},
		},
		"gke": {
			map[string]any{"location": "europe-west3", "clusterName": "prod"},
			schema.GroupKind{Group: "container.gcp.m.upbound.io", Kind: "Cluster"}, map[string]any{"location": "europe-west3"},
		},
	}
}

// importIn creates a ClusterImport. If reflected is set, its status says that it has reflected the cluster.
func importIn(t *testing.T, cloud string, spec map[string]any, reflected bool) *unstructured.Unstructured {
	t.Helper()
	imp := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		cloud: spec, "providerConfigRef": map[string]any{"kind": "ProviderConfig", "name": "customer"},
	}}}
	if cloud == "gke" {
		_ = unstructured.SetNestedField(imp.Object, "None", "spec", "kubeconfig", "source")
	}
	imp.SetGroupVersionKind(fleetv1alpha1.GroupVersion.WithKind("ClusterImport"))
	imp.SetNamespace(namespace)
	imp.SetName("shop")
	if err := hub.Create(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(hub.Delete(context.WithoutCancel(t.Context()), imp)); err != nil {
			t.Error(err)
		}
	})
	if !reflected {
		return imp
	}
	reference := map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "namespace": namespace, "name": "shop"}
	if err := unstructured.SetNestedSlice(imp.Object, []any{reference}, "status", "references"); err != nil {
		t.Fatal(err)
	}
	if err := hub.Status().Update(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	return imp
}

// manager is another user's managed resource for the cluster "prod".
func manager(kind schema.GroupKind, forProvider map[string]any, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"forProvider": runtime.DeepCopyJSON(forProvider), "managementPolicies": []any{"*"},
		"providerConfigRef": map[string]any{"kind": "ProviderConfig", "name": "customer"},
	}}}
	m.SetGroupVersionKind(kind.WithVersion("v1beta1"))
	m.SetNamespace(namespace)
	m.SetName("theirs")
	m.SetAnnotations(map[string]string{imported.ExternalNameAnnotation: "prod"})
	if change != nil {
		change(m)
	}
	return m
}

const managersMessage = "managers.imports.masthead.dev"

// answered waits until the hub answers a dry run as expected: the policy's parameters reach it a moment later.
func answered(t *testing.T, reason string, refused bool, try func(context.Context) error) {
	t.Helper()
	var last error
	if err := testenv.Poll(t.Context(), testenv.Patience, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return refused == (apierrors.IsForbidden(last) && strings.Contains(last.Error(), managersMessage)) && refused == (last != nil), nil
	}); err != nil {
		t.Errorf("%s: want it refused: %v, got %v", reason, refused, last)
	}
}

// TestNoOtherManagerOfAnImportedCluster: a managed resource without the label of an import is for an imported cluster,
// and may do more than observe.
func TestNoOtherManagerOfAnImportedCluster(t *testing.T) {
	create := func(o *unstructured.Unstructured) func(context.Context) error {
		return func(ctx context.Context) error { return hub.Create(ctx, o.DeepCopy(), client.DryRunAll) }
	}
	for cloud, c := range importsOfEachCloud() {
		t.Run(cloud, func(t *testing.T) {
			answered(t, "before there is an import", false, create(manager(c.kind, c.forProvider, nil)))
			imp := importIn(t, cloud, c.spec, true)
			answered(t, "the cluster of an import", true, create(manager(c.kind, c.forProvider, nil)))
			for name, tc := range map[string]edit{
				"default policies": {"They allow everything.", managersMessage, false, dropSpec("managementPolicies")},
				"to delete":        {"It is more than to observe.", managersMessage, false, setSpec([]any{"Observe", "Delete"}, "managementPolicies")},
				"no policies":      {"They allow everything where the provider's flag is off.", managersMessage, false, setSpec([]any{}, "managementPolicies")},
				"name by default": {"Crossplane takes the object's name.", managersMessage, false, func(o *unstructured.Unstructured) {
					o.SetAnnotations(nil)
					o.SetName("prod")
				}},
				"observes": {"It changes nothing.", "", false, setSpec([]any{"Observe"}, "managementPolicies")},
				"another name": {"It is another cluster.", "", false, func(o *unstructured.Unstructured) {
					annotate(o, imported.ExternalNameAnnotation, "test")
				}},
				"another place": {"It is another cluster.", "", false, func(o *unstructured.Unstructured) {
					for _, field := range []string{"region", "resourceGroupName", "location"} {
						if _, ok := c.forProvider[field]; ok {
							setSpec("elsewhere", "forProvider", field)(o)
						}
					}
				}},
				"another configuration":         {"The account may be another one.", "", false, setSpec("theirs", "providerConfigRef", "name")},
				"another kind of configuration": {"The account may be another one.", "", false, setSpec("ClusterProviderConfig", "providerConfigRef", "kind")},
				"another namespace":             {"Its configuration is another one.", "", false, func(o *unstructured.Unstructured) { o.SetNamespace("kube-public") }},
			} {
				answered(t, name+": "+tc.reason, tc.refused != "", create(manager(c.kind, c.forProvider, tc.change)))
			}
			if err := hub.Delete(t.Context(), imp); err != nil {
				t.Fatal(err)
			}
			answered(t, "after un-import", false, create(manager(c.kind, c.forProvider, nil)))
		})
	}
}

// TestManagerOfAnImportedClusterMayGo: a resource that managed the cluster before can be changed and deleted, and one
// that observes cannot begin to manage.
func TestManagerOfAnImportedClusterMayGo(t *testing.T) {
	c := importsOfEachCloud()["eks"]
	before, observer := manager(c.kind, c.forProvider, nil), manager(c.kind, c.forProvider, setSpec([]any{"Observe"}, "managementPolicies"))
	observer.SetName("observer")
	before.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
	for _, o := range []*unstructured.Unstructured{before, observer} {
		if err := hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = hub.Delete(context.WithoutCancel(t.Context()), o) })
	}
	importIn(t, "eks", c.spec, true)
	update := func(o *unstructured.Unstructured, change func(*unstructured.Unstructured)) func(context.Context) error {
		return func(ctx context.Context) error {
			changed := o.DeepCopy()
			change(changed)
			return hub.Update(ctx, changed, client.DryRunAll)
		}
	}
	answered(t, "begin to manage", true, update(observer, setSpec([]any{"*"}, "managementPolicies")))
	answered(t, "go on observing", false, update(observer, func(o *unstructured.Unstructured) { annotate(o, "a", "b") }))
	answered(t, "go on managing", false, update(before, func(o *unstructured.Unstructured) { annotate(o, "a", "b") }))
	if err := hub.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(before), before); err != nil {
		t.Fatal(err)
	}
	before.SetFinalizers(nil)
	if err := hub.Update(t.Context(), before); err != nil {
		t.Errorf("what is being deleted loses its finalizer: %v", err)
	}
}

// TestPoolsOfAnImportedCluster: the node groups that an import names are its cluster's. Others can be created: it is
// not known yet whether they exist.
func TestPoolsOfAnImportedCluster(t *testing.T) {
	c := importsOfEachCloud()["eks"]
	importIn(t, "eks", c.spec, true)
	for pool, refused := range map[string]bool{"blue": true, "new": false} {
		m := manager(schema.GroupKind{Group: c.kind.Group, Kind: "NodeGroup"}, map[string]any{
			"region": "eu-central-1", "clusterName": "prod", "nodeRoleArn": "arn:aws:iam::000000000000:role/x",
			"scalingConfig": map[string]any{"desiredSize": int64(1), "maxSize": int64(1), "minSize": int64(1)}, "subnetIds": []any{"subnet-0"},
		}, func(o *unstructured.Unstructured) { annotate(o, imported.ExternalNameAnnotation, pool) })
		answered(t, pool, refused, func(ctx context.Context) error { return hub.Create(ctx, m.DeepCopy(), client.DryRunAll) })
	}
}

// TestImportThatReflectsNothingBlocksNoManager: a user who may create ClusterImports names a cluster that another user
// is about to create.
func TestImportThatReflectsNothingBlocksNoManager(t *testing.T) {
	c := importsOfEachCloud()["eks"]
	reflected := importIn(t, "eks", c.spec, true)
	try := func(ctx context.Context) error {
		return hub.Create(ctx, manager(c.kind, c.forProvider, nil), client.DryRunAll)
	}
	answered(t, "while the import has reflected the cluster", true, try)
	unstructured.RemoveNestedField(reflected.Object, "status", "references")
	if err := hub.Status().Update(t.Context(), reflected); err != nil {
		t.Fatal(fmt.Errorf("cannot empty the status: %w", err))
	}
	answered(t, "while it has not", false, try)
}
