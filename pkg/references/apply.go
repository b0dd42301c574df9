// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// FieldManager is the field manager of fields filled by references.
const FieldManager = fleetv1alpha1.ReferencesFieldManager

// ApplyConfiguration returns the server-side apply configuration, to be applied with force, that puts a Result's filled
// fields into an object: these fields, and those the manager already owns, which would be removed otherwise. It is
// valid only for that object in the state in which it was read: it is refused for any other.
//
// An element of a list that is merged by keys is applied with its keys; any other list is applied whole. Without a
// schema that is every list.
func ApplyConfiguration(before *unstructured.Unstructured, result Result, manager string, schema *Schema) (*unstructured.Unstructured, error) {
	if before.GetUID() == "" || before.GetResourceVersion() == "" {
		return nil, errors.New("the object was not read from an API server")
	}
	out := &unstructured.Unstructured{Object: map[string]any{}}
	if spec, ok := before.Object["spec"].(map[string]any); ok {
		if fields := managed(before, manager); fields != nil {
			if part, ok := ownedPart(spec, fields).(map[string]any); ok {
				out.Object["spec"] = part
			}
		}
	}
	done := map[string]bool{}
	for _, path := range result.Filled {
		segments, err := fieldpath.Parse(path)
		if err != nil {
			return nil, fmt.Errorf("cannot parse the path %q: %w", path, err)
		}
		// What is applied whole is copied once, since it can be large.
		whole := applied(segments, result.Object.Object, schema).String()
		if done[whole] {
			continue
		}
		done[whole] = true
		out.Object, _ = put(out.Object, result.Object.Object, segments, schema).(map[string]any)
	}
	out.SetGroupVersionKind(before.GroupVersionKind())
	out.SetNamespace(before.GetNamespace())
	out.SetName(before.GetName())
	out.SetUID(before.GetUID())
	out.SetResourceVersion(before.GetResourceVersion())
	return out, nil
}

// applied returns the path of what is applied for a field: the field, or what contains it and is applied whole.
func applied(path fieldpath.Segments, object map[string]any, schema *Schema) fieldpath.Segments {
	var value any = object
	for i, s := range path {
		list, isList := value.([]any)
		if schema.atomic() || isList && (len(schema.listKeys()) == 0 || int(s.Index) >= len(list)) {
			return path[:i]
		}
		next, err := step(value, s)
		if err != nil {
			return path
		}
		value, schema = next, schema.at(s)
	}
	return path
}

// managed returns the spec fields that a manager applied, in the form of managedFields; nil if there are none.
func managed(obj *unstructured.Unstructured, manager string) map[string]any {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) == nil {
			spec, _ := fields["f:spec"].(map[string]any)
			return spec
		}
	}
	return nil
}

// ownedPart returns the part of a value that fields name; nil if it has none of them.
func ownedPart(value any, fields map[string]any) any {
	members := len(fields)
	if _, itself := fields["."]; itself {
		members--
	}
	if members == 0 {
		return runtime.DeepCopyJSONValue(value)
	}
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, f := range fields {
			key, ok := strings.CutPrefix(name, "f:")
			member, there := v[key]
			if sub, isMap := f.(map[string]any); ok && there && isMap {
				if part := ownedPart(member, sub); part != nil {
					out[key] = part
				}
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		return ownedElements(v, fields)
	}
	return nil
}

// ownedElements keeps the order of the list.
func ownedElements(list []any, fields map[string]any) any {
	var out []any
	for _, element := range list {
		for name, f := range fields {
			sub, _ := f.(map[string]any)
			if raw, ok := strings.CutPrefix(name, "v:"); ok && isValue(element, raw) {
				out = append(out, element)
			}
			raw, ok := strings.CutPrefix(name, "k:")
			keys := map[string]any{}
			if !ok || json.Unmarshal([]byte(raw), &keys) != nil || !hasKeys(element, keys) {
				continue
			}
			part, _ := ownedPart(element, sub).(map[string]any)
			if part == nil {
				part = map[string]any{}
			}
			for k := range keys {
				part[k] = element.(map[string]any)[k] //nolint:forcetypeassert // It has the keys.
			}
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func isValue(element any, raw string) bool {
	switch element.(type) {
	case map[string]any, []any:
		return false // Only scalars are named by their value.
	}
	data, err := json.Marshal(element)
	return err == nil && string(data) == raw
}

// hasKeys reports whether an element has the values of keys, as JSON.
func hasKeys(element any, keys map[string]any) bool {
	object, ok := element.(map[string]any)
	if !ok {
		return false
	}
	for k, want := range keys {
		have := object[k]
		if n, isInteger := have.(int64); isInteger {
			have = float64(n) // As in decoded JSON.
		}
		switch want.(type) {
		case map[string]any, []any:
			return false // Only scalars are keys.
		}
		if have != want {
			return false
		}
	}
	return true
}

// put copies the field at a path from an object, with the surroundings that must be applied with it.
func put(into, from any, path fieldpath.Segments, schema *Schema) any {
	if len(path) == 0 || schema.atomic() {
		return runtime.DeepCopyJSONValue(from)
	}
	switch f := from.(type) {
	case map[string]any:
		out, _ := into.(map[string]any)
		if out == nil {
			out = map[string]any{}
		}
		name := path[0].Field
		out[name] = put(out[name], f[name], path[1:], schema.at(path[0]))
		return out
	case []any:
		keys := schema.listKeys()
		if len(keys) == 0 || int(path[0].Index) >= len(f) {
			return runtime.DeepCopyJSONValue(from)
		}
		return putElement(into, f[path[0].Index], path[1:], schema.at(path[0]), keys)
	}
	return runtime.DeepCopyJSONValue(from)
}

// putElement copies a field of an element.
func putElement(into, from any, path fieldpath.Segments, schema *Schema, keys []string) any {
	list, _ := into.([]any)
	element, _ := from.(map[string]any)
	want := map[string]any{}
	for _, k := range keys {
		want[k] = element[k]
	}
	for i := range list {
		if have, ok := list[i].(map[string]any); ok && sameKeys(have, want) {
			list[i] = put(have, from, path, schema)
			return list
		}
	}
	return append(list, put(want, from, path, schema))
}

func sameKeys(have, want map[string]any) bool {
	for k, v := range want {
		if !reflect.DeepEqual(have[k], v) {
			return false
		}
	}
	return true
}
