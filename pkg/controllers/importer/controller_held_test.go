// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// theirFinalizer is a foreign finalizer.
const theirFinalizer = "example.org/kept"

// hold adds a foreign finalizer to the import, beside ours or in its place.
func (h *hubOfOneImport) hold(ours bool) {
	h.t.Helper()
	imp := h.get()
	if !ours {
		imp.Finalizers = nil
	}
	imp.Finalizers = append(imp.Finalizers, theirFinalizer)
	if err := h.c.Update(h.t.Context(), imp); err != nil {
		h.t.Fatal(err)
	}
}

// namesNothing checks that the status names nothing, so that the policy about members restricts nothing.
func (h *hubOfOneImport) namesNothing() {
	h.t.Helper()
	imp := h.get()
	if len(imp.Status.References) > 0 || imp.Status.Kubeconfig != nil || slices.Contains(imp.Finalizers, fleetv1alpha1.ImportFinalizer) {
		h.t.Errorf("want an import that names nothing and is held by others alone, got %v %+v", imp.Finalizers, imp.Status)
	}
	if left := h.made(); len(left) > 0 {
		h.t.Errorf("want nothing left, got %v", left)
	}
}

// keepsFinalizers is a hub that refuses every change of a ClusterImport but that of its status.
type keepsFinalizers struct{ client.Client }

// Patch implements client.Client.
func (k keepsFinalizers) Patch(ctx context.Context, o client.Object, p client.Patch, options ...client.PatchOption) error {
	if _, ok := o.(*fleetv1alpha1.ClusterImport); ok {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "clusterimports"}, o.GetName(), errors.New("no such right"))
	}
	return k.Client.Patch(ctx, o, p, options...)
}

// TestImportWhoseFinalizerStaysSaysWhy: its status says in each pass why the finalizer stays, not in every second one.
func TestImportWhoseFinalizerStaysSaysWhy(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	if err := h.c.Delete(t.Context(), h.get()); err != nil {
		t.Fatal(err)
	}
	h.r.hub = keepsFinalizers{h.r.hub}
	for range 10 {
		if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		h.observe()
	}
	for range 4 {
		if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); !apierrors.IsForbidden(err) {
			t.Fatalf("want the finalizer kept, got %v", err)
		}
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonRightsMissing)
		h.want(fleetv1alpha1.ConditionStalled, fleetv1alpha1.ReasonRightsMissing)
	}
}

// TestImportThatOthersHoldNamesNothing: a foreign finalizer keeps a deleted import. As long as its status names the
// Cluster, the hub refuses every Machine of a cluster of that name.
func TestImportThatOthersHoldNamesNothing(t *testing.T) {
	for name, ours := range map[string]bool{"BesideOurs": true, "InPlaceOfOurs": false} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, anImport())
			h.settle()
			h.hold(ours)
			h.unimport()
			h.namesNothing()
			before := len(h.writes)
			if _, err := h.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: h.key}); err != nil || len(h.writes) != before {
				t.Errorf("want nothing written any more, got %v, %v", h.writes[before:], err)
			}
		})
	}
}

// TestUnimportThatWaitsNamesWhatIsThere: the Crossplane provider is gone, so that un-import waits for ever after the
// Cluster is deleted.
func TestUnimportThatWaitsNamesWhatIsThere(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	m := h.list(observedCluster)[0]
	m.SetFinalizers([]string{"finalizer.managedresource.crossplane.io"})
	if err := h.c.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	h.unimport()
	h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonUnimporting)
	refs := h.get().Status.References
	if !slices.ContainsFunc(refs, func(ref fleetv1alpha1.ImportReference) bool { return ref.Name == m.GetName() }) {
		t.Errorf("want what is waited for still named, got %v", refs)
	}
	for _, ref := range refs {
		if ref.Kind == "Cluster" && ref.Name == "shop" || ref.Kind == "MachinePool" {
			t.Errorf("want nothing named that is gone, got %v", ref)
		}
	}
}

// TestRevokedImportNamesNothing: the manager was killed after it took the finalizer off an import that may no longer
// use its configuration, and before it wrote the status.
func TestRevokedImportNamesNothing(t *testing.T) {
	imp := anImport()
	imp.Spec.ProviderConfigRef = fleetv1alpha1.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "platform"}
	h := newHub(t, imp)
	h.allow("customers")
	h.settle()
	imp = h.get()
	imp.Finalizers = nil
	if err := h.c.Update(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	h.allow("others")
	h.settle()
	h.want(fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonProviderConfigNotAllowed)
	h.namesNothing()
}
