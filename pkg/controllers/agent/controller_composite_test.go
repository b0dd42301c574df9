// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// newCompositeFixture returns a fixture whose hub publishes a namespaced composite as well.
func newCompositeFixture(t *testing.T) *fixture {
	t.Helper()
	f := prepareFixture(t)
	f.PublishXRD(f.CompositeCRD("Cache", "caches", apiextensionsv1.NamespaceScoped))
	f.start()
	return f
}

func TestSynchronizationPullPublishesNamespacedComposites(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	f.PublishXRD(f.CompositeCRD("ClusterCache", "clustercaches", apiextensionsv1.ClusterScoped))
	local, hub := f.CreateCache("cache")
	if got, _, _ := unstructured.NestedInt64(hub.Object, "spec", "memoryMB"); got != 64 {
		t.Errorf("want the spec in the hub, got %v", hub.Object["spec"])
	}
	f.Edit(f.Hub, hub, func() {
		_ = unstructured.SetNestedField(hub.Object, "enforced", "spec", "crossplane", "compositionRef", "name")
	})
	hub.Object["status"] = map[string]any{"address": "cache.example.org"}
	f.Within("Crossplane sets the status", func() error {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
			return err
		}
		hub.Object["status"] = map[string]any{"address": "cache.example.org"}
		return f.Hub.Status().Update(f.Ctx, hub)
	})
	f.Within("the status comes back", func() error {
		u := f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)
		if got, _, _ := unstructured.NestedString(u.Object, "status", "address"); got != "cache.example.org" {
			return fmt.Errorf("it is %v", u.Object["status"])
		}
		return nil
	})
	f.WaitForIdle()
	if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(hub.Object, "spec", "crossplane", "compositionRef", "name"); got != "enforced" {
		t.Errorf("want what Crossplane enforces not to be fought, got %v", hub.Object["spec"])
	}
	err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: "clustercaches." + f.Group}, &apiextensionsv1.CustomResourceDefinition{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("want a cluster-scoped composite never to be published, got %v", err)
	}

	if err := f.Workload.Delete(f.Ctx, local); err != nil {
		t.Fatal(err)
	}
	for _, c := range []client.Client{f.Workload, f.Hub} {
		f.Within("the composite is gone", func() error {
			u := f.NewCache(f.Namespace, "cache")
			if c == f.Hub {
				u.SetNamespace(f.Target)
			}
			if err := c.Get(f.Ctx, client.ObjectKeyFromObject(u), u); !apierrors.IsNotFound(err) {
				return errors.New("it is not")
			}
			return nil
		})
	}
}

// What Crossplane does with resourceRefs: ExistingComposedResourceObserver reads each object and its connection
// details, and DeletingComposedResourceGarbageCollector deletes what no function wants and nothing else controls (both
// in internal/controller/apiextensions/composite/composition_functions.go of Crossplane 2.4).
func TestForgedResourceRefsNeverReachTheHub(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	forged := []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "of-another-tenant"}}
	local, hub := f.CreateCache("cache", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, forged, "spec", "crossplane", "resourceRefs")
		_ = unstructured.SetNestedField(u.Object, "Manual", "spec", "crossplane", "compositionUpdatePolicy")
		_ = unstructured.SetNestedField(u.Object, "the-authors", "spec", "resourceRef")
	})
	want := map[string]any{
		"memoryMB": int64(64), "resourceRef": "the-authors", "crossplane": map[string]any{"compositionUpdatePolicy": "Manual"},
	}
	if diff := cmp.Diff(want, hub.Object["spec"]); diff != "" {
		t.Errorf("want what the user may write and nothing else (-want +got):\n%s", diff)
	}
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)

	composed := []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "composed"}}
	f.Edit(f.Hub, hub, func() { _ = unstructured.SetNestedSlice(hub.Object, composed, "spec", "crossplane", "resourceRefs") })
	f.Edit(f.Workload, local, func() {
		_ = unstructured.SetNestedField(local.Object, int64(128), "spec", "memoryMB")
		_ = unstructured.SetNestedSlice(local.Object, append(forged, composed...), "spec", "crossplane", "resourceRefs")
	})
	f.Within("the edit travels", func() error {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(hub.Object, "spec", "memoryMB"); got != 128 {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
	f.WaitForIdle()
	if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedSlice(hub.Object, "spec", "crossplane", "resourceRefs"); !cmp.Equal(composed, got) {
		t.Errorf("want the references to be Crossplane's, got %v", got)
	}
	for _, m := range hub.GetManagedFields() {
		if m.Manager == ownership.FieldManager(f.Identifier) && strings.Contains(m.FieldsV1.String(), `"f:resourceRefs"`) {
			t.Errorf("want the field never to be Masthead's, got %s", m.FieldsV1)
		}
	}
}
