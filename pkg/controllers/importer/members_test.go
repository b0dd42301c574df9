// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// TestRestAsksTheHubForLittle: an idle import lists nothing at the API server, and above all not the Machines of its
// namespace, of which there can be thousands.
func TestRestAsksTheHubForLittle(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	var listed []string
	h.r.live = interceptor.NewClient(h.c, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			listed = append(listed, list.GetObjectKind().GroupVersionKind().Kind)
			return c.List(ctx, list, opts...)
		},
	})
	if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); err != nil {
		t.Fatal(err)
	}
	if len(listed) > 0 {
		t.Errorf("want nothing listed, got %v", listed)
	}
}

// aMachine names a cluster.
func aMachine(namespace, cluster string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"clusterName": cluster, "version": "v1.31.0"}, "status": map[string]any{"phase": "Running"},
	}}
	m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	m.SetNamespace(namespace)
	m.SetName("theirs")
	m.SetLabels(map[string]string{fleetv1alpha1.ImportUIDLabel: "u", "theirs": "x"})
	m.SetAnnotations(map[string]string{"theirs": "x"})
	return m
}

// TestLittleIsKeptOfAMachine: the hub can have many.
func TestLittleIsKeptOfAMachine(t *testing.T) {
	got, err := slimMember(aMachine("customers", "shop"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": clusterv1.GroupVersion.String(), "kind": "Machine",
		"metadata": map[string]any{"namespace": "customers", "name": "theirs", "labels": map[string]any{fleetv1alpha1.ImportUIDLabel: "u"}},
		"spec":     map[string]any{"clusterName": "shop"},
	}
	if diff := cmp.Diff(want, got.(*unstructured.Unstructured).Object); diff != "" {
		t.Errorf("slimMember() (-want +got):\n%s", diff)
	}
}

// TestMachineLeadsToTheImportOfItsCluster: Machines of all other clusters are irrelevant.
func TestMachineLeadsToTheImportOfItsCluster(t *testing.T) {
	h := newHub(t, anImport())
	for _, tc := range []struct {
		namespace, cluster string
		want               []reconcile.Request
	}{
		{"customers", "shop", []reconcile.Request{{NamespacedName: h.key}}},
		{"customers", "another", nil},
		{"tenant", "shop", nil},
	} {
		if got := h.r.importOfMember(t.Context(), aMachine(tc.namespace, tc.cluster)); !slices.Equal(got, tc.want) {
			t.Errorf("importOfMember(%s/%s): want %v, got %v", tc.namespace, tc.cluster, tc.want, got)
		}
	}
}
