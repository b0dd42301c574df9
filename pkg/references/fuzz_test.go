// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// FuzzResolve copies values from any path of any object to any path of any other. Nothing panics, nothing outside of
// the spec and nothing in spec.references is changed, no input is changed, and a second pass changes nothing.
func FuzzResolve(f *testing.F) {
	f.Add("data.a", "spec.a", `{"data":{"a":"x"}}`, `{"spec":{}}`, false)
	f.Add("data[*]", "spec.l[*].a", `{"data":{"a":"x","b":1}}`, `{"spec":{"l":[{},{"a":1}]}}`, true)
	f.Add("a[*][*]", "spec.a[0][0]", `{"a":[[1,2],[3]]}`, `{"spec":{"a":null}}`, false)
	f.Add("a[b=c].d", "spec.l[a=1].b", `{"a":[{"b":"c","d":"x"},{"b":1}]}`, `{"spec":{"l":[{"a":1},{"a":2}]}}`, true)
	f.Add("a['b.c'][1]", "spec[a.b][1024]", `{"a":{"b.c":[0,{"d":null}]}}`, `{"spec":{"a.b":[]}}`, true)
	f.Add("[0]", "spec", `{}`, `{}`, false)
	f.Add("a.b", "metadata.finalizers[0]", `{"a":{"b":"x"}}`, `{"metadata":{"finalizers":[]}}`, true)
	f.Add("a[b]c]", "spec.a[b", `{"a":{"b]c":"x"}}`, `{"spec":{"*":{"]":1}}}`, true)
	f.Add("data.x", "spec[*].name", `{"data":{"x":"aGVsbG8="}}`, `{"spec":{"references":[{"name":"a"}]}}`, true)
	resolver := NewResolver()
	f.Fuzz(func(t *testing.T, from, to, source, target string, always bool) {
		src, dst := map[string]any{}, map[string]any{}
		if kjson.Unmarshal([]byte(source), &src) != nil || kjson.Unmarshal([]byte(target), &dst) != nil || src == nil || dst == nil {
			return // Only objects are resolved.
		}
		dst["apiVersion"], dst["kind"], dst["metadata"] = "example.org/v1", "Thing", map[string]any{"name": "thing", "namespace": "team-a"}
		ref := commonv1alpha1.GenericReference{Resource: "configmaps", Name: "source", FromFieldPath: from, ToFieldPath: to}
		if always {
			ref.Policy = &commonv1alpha1.ReferencePolicy{Resolve: commonv1alpha1.ResolveAlways}
		}
		obj := &unstructured.Unstructured{Object: dst}
		before := runtime.DeepCopyJSON(dst)
		server := &objects{of: map[string]map[string]any{"ConfigMap.v1/team-a/source": src}}
		resolve := func(o *unstructured.Unstructured) (Result, error) {
			return resolver.Resolve(context.Background(), Request{
				Object: o, References: []commonv1alpha1.GenericReference{ref}, Reader: server, Mapper: mapper(),
			})
		}
		result, err := resolve(obj)
		if settledWith(t, dst, ref) && (err != nil || len(result.Filled)+len(server.reads) > 0) {
			t.Fatalf("want nothing to be done for what is settled, got %v, filled %v, read %v", err, result.Filled, server.reads)
		}
		if same(before, dst) == false {
			t.Fatal("the object was changed")
		}
		if failed := (&Error{}); err != nil && !errors.As(err, &failed) {
			t.Fatalf("not an Error: %v", err)
		}
		after := result.Object.Object
		for key := range after {
			if key != "spec" && !same(after[key], before[key]) {
				t.Fatalf("%s was changed by %q", key, to)
			}
		}
		beforeSpec, _ := before["spec"].(map[string]any)
		afterSpec, _ := after["spec"].(map[string]any)
		if !same(beforeSpec["references"], afterSpec["references"]) {
			t.Fatalf("spec.references was changed by %q", to)
		}
		if len(result.Filled) == 0 {
			return
		}
		if again, err := resolve(result.Object); err != nil || len(again.Filled) > 0 {
			t.Fatalf("a second pass from %q to %q filled %v: %v", from, to, again.Filled, err)
		}
		_, _ = Parse(after)
		_ = Pending(after)
		result.Object.SetUID("u")
		result.Object.SetResourceVersion("1")
		if _, err := ApplyConfiguration(result.Object, result, FieldManager, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// settledWith reports whether an object is settled with a reference.
func settledWith(tb testing.TB, object map[string]any, ref commonv1alpha1.GenericReference) bool {
	tb.Helper()
	with := runtime.DeepCopyJSON(object)
	spec, ok := with["spec"].(map[string]any)
	if !ok {
		return false
	}
	spec["references"] = content(tb, `{"references":`+asText(tb, []any{ref})+`}`)["references"]
	return Settled(with)
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}
