// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// objects is an API server that has some objects, and counts how often each is read.
type objects struct {
	of    map[string]map[string]any
	reads map[string]int
}

func (o *objects) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	id := gvk.Kind + "." + gvk.Version + "/" + key.String()
	if o.reads == nil {
		o.reads = map[string]int{}
	}
	o.reads[id]++
	content, ok := o.of[id]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind) + "s"}, key.Name)
	}
	u := obj.(*unstructured.Unstructured) //nolint:forcetypeassert // A test.
	u.Object = content
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(key.Namespace)
	u.SetName(key.Name)
	return nil
}

// List lists nothing.
func (o *objects) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func mapper() Mapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range []struct {
		schema.GroupVersionKind
		scope meta.RESTScope
	}{
		{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace},
		{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace},
		{schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot},
		{schema.GroupVersionKind{Group: "ec2.aws.crossplane.io", Version: "v1alpha1", Kind: "Vpc"}, meta.RESTScopeNamespace},
		{schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Thing"}, meta.RESTScopeNamespace},
		{schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Thing"}, meta.RESTScopeNamespace},
		{schema.GroupVersionKind{Group: "evil.example.org", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace},
	} {
		m.Add(k.GroupVersionKind, k.scope)
	}
	return NewMapper(m)
}

func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		tb.Fatal(err)
	}
	return u
}

func content(tb testing.TB, text string) map[string]any {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]any{}
	if err := kjson.Unmarshal(data, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

func getReferences(tb testing.TB, u *unstructured.Unstructured) []commonv1alpha1.GenericReference {
	tb.Helper()
	refs, err := Parse(u.Object)
	if err != nil {
		tb.Fatal(err)
	}
	return refs
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func asText(tb testing.TB, v any) string {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// permitted permits one source.
type permitted types.NamespacedName

func (p permitted) Permits(_ context.Context, _ schema.GroupKind, _ string, to Source) (bool, error) {
	return types.NamespacedName(p) == to.NamespacedName, nil
}
