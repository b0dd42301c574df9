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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// cacheGVK is the kind of the composites of an XRD v2.
func (f *fixture) cacheGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: f.group, Version: "v1alpha1", Kind: "Cache"}
}

// compositeCRD is a CRD as Crossplane derives it from an XRD v2.
func (f *fixture) compositeCRD(kind, plural string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	crd := f.crd()
	crd.Name = plural + "." + f.group
	crd.OwnerReferences[0].Name = crd.Name
	crd.Spec.Scope = scope
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind, Categories: []string{"crossplane", "composite"}}
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	reference := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": str}}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{
		Type: "object",
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"memoryMB": {Type: "integer"}, "resourceRef": str,
			"crossplane": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"compositionRef": reference, "compositionUpdatePolicy": str,
				"resourceRefs": {
					Type: "array", XListType: new("atomic"), Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"apiVersion": str, "kind": str, "name": str},
					}},
				},
			}},
		},
	}
	return crd
}

// publishXRD derives an XRD v2 from a CRD, as Crossplane shows it when it is established.
func (f *fixture) publishXRD(crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	f.T.Helper()
	f.Create(f.hub, crd)
	xrd := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"group": f.group, "scope": string(crd.Spec.Scope),
			"names":    map[string]any{"kind": crd.Spec.Names.Kind, "plural": crd.Spec.Names.Plural},
			"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "referenceable": true}},
		},
	}}
	xrd.SetGroupVersionKind(crossplane.XRDKind.GroupVersionKind)
	xrd.SetName(crd.Name)
	f.Create(f.hub, xrd)
	xrd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	if err := f.hub.Status().Update(f.Ctx, xrd); err != nil {
		f.T.Fatal(err)
	}
	return xrd
}

// newCompositeFixture returns a fixture whose hub publishes a namespaced composite as well.
func newCompositeFixture(t *testing.T) *fixture {
	t.Helper()
	f := prepareFixture(t)
	f.publishXRD(f.compositeCRD("Cache", "caches", apiextensionsv1.NamespaceScoped))
	f.start()
	return f
}

func (f *fixture) cacheObject(namespace, name string) *unstructured.Unstructured {
	u := f.object(namespace, name)
	u.SetGroupVersionKind(f.cacheGVK())
	return u
}

// cache creates a composite in the workload cluster, and returns it with the hub's.
func (f *fixture) cache(name string, edit ...func(*unstructured.Unstructured)) (local, hub *unstructured.Unstructured) {
	f.T.Helper()
	local = f.cacheObject(f.namespace, name)
	local.Object["spec"] = map[string]any{"memoryMB": int64(64)}
	for _, e := range edit {
		e(local)
	}
	f.Within("the composite is created", func() error { return f.workload.Create(f.Ctx, local) })
	hub = f.cacheObject(f.target, name)
	f.Within("the composite is pushed", func() error { return f.hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub) })
	return local, hub
}

// cacheSynced waits until a composite in the workload cluster has the condition AgentSynced with a reason.
func (f *fixture) cacheSynced(name, reason string) *unstructured.Unstructured {
	f.T.Helper()
	u := f.cacheObject(f.namespace, name)
	f.Within("composite "+name+" has AgentSynced with reason "+reason, func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if c := propagation.AgentSynced(u); c["reason"] != reason {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	return u
}

func TestSynchronizationPullPublishesNamespacedComposites(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	f.publishXRD(f.compositeCRD("ClusterCache", "clustercaches", apiextensionsv1.ClusterScoped))
	local, hub := f.cache("cache")
	if got, _, _ := unstructured.NestedInt64(hub.Object, "spec", "memoryMB"); got != 64 {
		t.Errorf("want the spec in the hub, got %v", hub.Object["spec"])
	}
	f.Edit(f.hub, hub, func() {
		_ = unstructured.SetNestedField(hub.Object, "enforced", "spec", "crossplane", "compositionRef", "name")
	})
	hub.Object["status"] = map[string]any{"address": "cache.example.org"}
	f.Within("Crossplane sets the status", func() error {
		if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
			return err
		}
		hub.Object["status"] = map[string]any{"address": "cache.example.org"}
		return f.hub.Status().Update(f.Ctx, hub)
	})
	f.Within("the status comes back", func() error {
		u := f.cacheSynced("cache", fleetv1alpha1.ReasonSynced)
		if got, _, _ := unstructured.NestedString(u.Object, "status", "address"); got != "cache.example.org" {
			return fmt.Errorf("it is %v", u.Object["status"])
		}
		return nil
	})
	f.settled()
	if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(hub.Object, "spec", "crossplane", "compositionRef", "name"); got != "enforced" {
		t.Errorf("want what Crossplane enforces not to be fought, got %v", hub.Object["spec"])
	}
	err := f.workload.Get(f.Ctx, client.ObjectKey{Name: "clustercaches." + f.group}, &apiextensionsv1.CustomResourceDefinition{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("want a cluster-scoped composite never to be published, got %v", err)
	}

	if err := f.workload.Delete(f.Ctx, local); err != nil {
		t.Fatal(err)
	}
	for _, c := range []client.Client{f.workload, f.hub} {
		f.Within("the composite is gone", func() error {
			u := f.cacheObject(f.namespace, "cache")
			if c == f.hub {
				u.SetNamespace(f.target)
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
	local, hub := f.cache("cache", func(u *unstructured.Unstructured) {
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
	f.cacheSynced("cache", fleetv1alpha1.ReasonSynced)

	composed := []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "composed"}}
	f.Edit(f.hub, hub, func() { _ = unstructured.SetNestedSlice(hub.Object, composed, "spec", "crossplane", "resourceRefs") })
	f.Edit(f.workload, local, func() {
		_ = unstructured.SetNestedField(local.Object, int64(128), "spec", "memoryMB")
		_ = unstructured.SetNestedSlice(local.Object, append(forged, composed...), "spec", "crossplane", "resourceRefs")
	})
	f.Within("the edit travels", func() error {
		if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(hub.Object, "spec", "memoryMB"); got != 128 {
			return fmt.Errorf("it is %d", got)
		}
		return nil
	})
	f.settled()
	if err := f.hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedSlice(hub.Object, "spec", "crossplane", "resourceRefs"); !cmp.Equal(composed, got) {
		t.Errorf("want the references to be Crossplane's, got %v", got)
	}
	for _, m := range hub.GetManagedFields() {
		if m.Manager == ownership.FieldManager(f.identifier) && strings.Contains(m.FieldsV1.String(), `"f:resourceRefs"`) {
			t.Errorf("want the field never to be Masthead's, got %s", m.FieldsV1)
		}
	}
}
