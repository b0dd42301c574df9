// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// fuzzSchema has lists that are merged by keys, one nested in the other, and atomic parts.
func fuzzSchema() *Schema {
	byKeys := func(element apiextensionsv1.JSONSchemaProps, keys ...string) apiextensionsv1.JSONSchemaProps {
		kind := "map"
		return apiextensionsv1.JSONSchemaProps{
			Type: "array", XListType: &kind, XListMapKeys: keys, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &element},
		}
	}
	atomic, str := "atomic", apiextensionsv1.JSONSchemaProps{Type: "string"}
	port := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"port": {Type: "integer"}, "protocol": str, "note": str}}
	pool := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": str, "region": str, "ports": byKeys(port, "port", "protocol"),
	}}
	return NewSchema(&apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"region": str, "pools": byKeys(pool, "name"), "list": {Type: "array"},
			"whole":  {Type: "object", XMapType: &atomic},
			"values": {Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &str}},
		}},
	}})
}

// FuzzApplyConfiguration fills one field after the other. What is applied for the second is exactly what was filled
// into it, what was applied for the first, and the keys of the elements that these are in.
func FuzzApplyConfiguration(f *testing.F) {
	f.Add(`{}`, `"x"`, "spec.region", "spec.values.a")
	f.Add(`{"pools":[{"name":"a"},{"name":"b","region":"mine"},{"name":"c"}]}`, `"x"`, "spec.pools[0].region", "spec.pools[*].region")
	f.Add(`{"pools":[{"name":"a","ports":[{"port":1,"protocol":"TCP"},{"port":1,"protocol":"UDP"}]}]}`, `"x"`, "spec.pools[0].ports[1].note", "spec.pools[*].ports[*].note")
	f.Add(`{"list":[{"a":1},{}],"whole":{"a":1}}`, `"x"`, "spec.list[1].a", "spec.whole.b")
	f.Add(`{"pools":[{"name":"a"}]}`, `[{"port":1,"protocol":"TCP"}]`, "spec.pools[0].ports", "spec.pools[0].ports[0].note")
	f.Add(`{"region":"mine"}`, `{"a":{"b":"c"}}`, "spec.values", "spec.list[0]")
	f.Add(`{"list":[1]}`, `{}`, "spec.values", "spec.values.a")
	schema, resolver := fuzzSchema(), NewResolver()
	f.Fuzz(func(t *testing.T, spec, value, first, second string) {
		content, source := map[string]any{}, map[string]any{}
		if kjson.Unmarshal([]byte(spec), &content) != nil || content == nil || kjson.Unmarshal([]byte(`{"data":`+value+`}`), &source) != nil {
			return // Only objects are resolved.
		}
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Thing", "spec": content,
			"metadata": map[string]any{"name": "thing", "namespace": "team-a", "uid": "u", "resourceVersion": "1"},
		}}
		var applied map[string]string
		for _, to := range []string{first, second} {
			result, err := resolver.Resolve(context.Background(), Request{
				Object: obj, Reader: &objects{of: map[string]map[string]any{"ConfigMap.v1/team-a/source": source}}, Mapper: mapper(), Schema: schema,
				References: []commonv1alpha1.GenericReference{{Resource: "configmaps", Name: "source", FromFieldPath: "data", ToFieldPath: to}},
			})
			if err != nil || len(result.Filled) == 0 {
				return
			}
			before, ok := collectLeaves(obj, schema)
			all, stillOK := collectLeaves(result.Object, schema)
			if !ok || !stillOK {
				return // The API server refuses such an object.
			}
			want := map[string]string{}
			for _, path := range result.Filled {
				addFilled(t, want, all, path, result.Object, schema)
			}
			for leaf, value := range all {
				if isBelowAny(leaf, applied) {
					want[leaf] = value
				}
			}
			config, err := ApplyConfiguration(obj, result, "m", schema)
			if err != nil {
				t.Fatal(err)
			}
			got, ok := collectLeaves(config, schema)
			if diff := cmp.Diff(want, got); !ok || diff != "" {
				t.Fatalf("filled %v into %v, with %v from earlier: -want +got:\n%s", result.Filled, before, applied, diff)
			}
			applied = got
			obj = result.Object.DeepCopy()
			obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
				Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(asText(t, collectFields(config.Object, schema, true))),
			}})
		}
	})
}

// isBelowAny reports whether a leaf is one of the given leaves, or below one.
func isBelowAny(leaf string, of map[string]string) bool {
	for l := range of {
		if leaf == l || strings.HasPrefix(leaf, l+"/") {
			return true
		}
	}
	return false
}

// addFilled adds the leaves at and below a path, and the keys of the elements that it is in.
func addFilled(t *testing.T, want, all map[string]string, path string, obj *unstructured.Unstructured, schema *Schema) {
	t.Helper()
	segments, err := fieldpath.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	at, value := "", any(obj.Object)
	for _, s := range segments {
		if schema.atomic() {
			break
		}
		list, isList := value.([]any)
		if isList && len(schema.listKeys()) == 0 {
			break
		}
		if isList {
			element, keys := list[s.Index], schema.listKeys()
			at += "/" + elementKey(element, keys)
			for _, k := range keys {
				want[at+"/f:"+k] = all[at+"/f:"+k]
			}
		} else {
			at += "/f:" + s.Field
		}
		if value, err = step(value, s); err != nil {
			t.Fatal(err)
		}
		schema = schema.at(s)
	}
	for leaf, value := range all {
		if isBelowAny(leaf, map[string]string{at: ""}) {
			want[leaf] = value
		}
	}
}

// collectLeaves returns the fields of the spec that are merged individually, with their values. ok reports whether the
// API server would accept it: each element of a list that is merged by keys has the keys, and no two elements have the
// same values of them.
func collectLeaves(obj *unstructured.Unstructured, schema *Schema) (leaves map[string]string, ok bool) {
	leaves, ok = map[string]string{}, true
	var walk func(at string, value any, schema *Schema)
	walk = func(at string, value any, schema *Schema) {
		switch v := value.(type) {
		case map[string]any:
			if len(v) == 0 || schema.atomic() {
				break
			}
			for name, field := range v {
				ok = ok && !strings.ContainsAny(name, "/*")
				walk(at+"/f:"+name, field, schema.field(name))
			}
			return
		case []any:
			keys := schema.listKeys()
			if len(v) == 0 || len(keys) == 0 {
				break
			}
			seen := map[string]bool{}
			for _, element := range v {
				key := elementKey(element, keys)
				ok = ok && key != "" && !seen[key]
				seen[key] = true
				walk(at+"/"+key, element, schema.at(fieldpath.Segment{Type: fieldpath.SegmentIndex}))
			}
			return
		}
		ok = ok && (schema == nil || schema.fitsType(value))
		data, _ := json.Marshal(value)
		leaves[at] = string(data)
	}
	walk("/f:spec", obj.Object["spec"], schema.field("spec"))
	return leaves, ok
}

// fitsType reports whether a value has the type of a schema.
func (s *Schema) fitsType(value any) bool {
	switch value.(type) {
	case map[string]any:
		return s.hasType("object")
	case []any:
		return s.hasType("array")
	}
	return !s.hasType("object") && !s.hasType("array")
}

// elementKey is an element as managedFields have it; empty if it lacks a key.
func elementKey(element any, keys []string) string {
	object, _ := element.(map[string]any)
	key := map[string]any{}
	for _, k := range keys {
		switch value := object[k].(type) {
		case string, bool, int64:
			key[k] = value
		default:
			return ""
		}
	}
	data, _ := json.Marshal(key)
	return "k:" + string(data)
}

// collectFields are the fields of a value in the form of managedFields.
func collectFields(value any, schema *Schema, root bool) map[string]any {
	out := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		if schema.atomic() {
			return out
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if !root || name == "spec" {
				out["f:"+name] = collectFields(v[name], schema.field(name), false)
			}
		}
	case []any:
		keys := schema.listKeys()
		if len(keys) == 0 {
			return out
		}
		for _, element := range v {
			fields := collectFields(element, schema.at(fieldpath.Segment{Type: fieldpath.SegmentIndex}), false)
			fields["."] = map[string]any{}
			out[elementKey(element, keys)] = fields
		}
	}
	return out
}
