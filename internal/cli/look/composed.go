// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/cli/why"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// maxComposed is the maximum number of resources read of one composite.
const maxComposed = 100

// composed follows an object of Crossplane's to its composed resources.
func (l *Collector) composed(ctx context.Context, t *why.Thing) *why.Thing {
	leave, ok := l.enter(t.Ref)
	if !ok || t.Object == nil {
		return t
	}
	defer leave()
	if t.Role == why.RoleObject || t.Role == why.RoleHub {
		t.Role = roleInHub(t.Object)
	}
	for i, ref := range resourceRefs(t.Object) {
		if i == maxComposed {
			break
		}
		need := l.thing(ctx, l.hub.ClusterClient, why.RoleHub, ref.kind, ref.namespace, ref.name)
		t.Needs = append(t.Needs, l.composed(ctx, need))
	}
	return t
}

// roleInHub distinguishes Crossplane's own objects from merely composed ones, such as a Deployment.
func roleInHub(obj *unstructured.Unstructured) why.Role {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if condition.Entry(obj, "Synced") != nil {
		return why.RoleHub
	}
	for _, field := range []string{"forProvider", "resourceRef", "resourceRefs", "crossplane", "compositionRef", "compositionSelector"} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", field); ok && len(conditions) == 0 {
			return why.RoleHub
		}
	}
	return why.RoleObject
}

type resourceRef struct {
	kind            schema.GroupVersionKind
	namespace, name string
}

// resourceRefs returns the references of a claim or a composite. A reference without a namespace leads to the namespace
// of the object itself.
func resourceRefs(obj *unstructured.Unstructured) []resourceRef {
	var refs []any
	if one, ok, _ := unstructured.NestedMap(obj.Object, "spec", "resourceRef"); ok {
		refs = append(refs, one)
	}
	for _, path := range [][]string{{"spec", "resourceRefs"}, {"spec", "crossplane", "resourceRefs"}} {
		list, _, _ := unstructured.NestedSlice(obj.Object, path...)
		refs = append(refs, list...)
	}
	var out []resourceRef
	for _, r := range refs {
		m, ok := r.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		gv, err := schema.ParseGroupVersion(text("apiVersion"))
		if err != nil || text("kind") == "" || text("name") == "" {
			continue
		}
		namespace := text("namespace")
		if namespace == "" {
			namespace = obj.GetNamespace()
		}
		out = append(out, resourceRef{kind: gv.WithKind(text("kind")), namespace: namespace, name: text("name")})
	}
	return out
}
