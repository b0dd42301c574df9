// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A shape selects what is kept of an object.
type shape func(*unstructured.Unstructured) map[string]any

// keeping returns the shape that keeps metadata and the fields of some paths.
func keeping(paths ...string) shape {
	return func(u *unstructured.Unstructured) map[string]any { return pick(u.Object, paths...) }
}

// whole keeps the kinds that hold no credentials by their design.
func whole(u *unstructured.Unstructured) map[string]any { return u.DeepCopy().Object }

// pick copies fields, with the object's type and identity.
func pick(from map[string]any, paths ...string) map[string]any {
	out := map[string]any{}
	for _, path := range append([]string{"apiVersion", "kind", "metadata"}, paths...) {
		fields := strings.Split(path, ".")
		if value, ok, err := unstructured.NestedFieldCopy(from, fields...); ok && err == nil {
			_ = unstructured.SetNestedField(out, value, fields...) // It fails where the parent is no map, and is one here.
		}
	}
	return out
}

// finish removes what must not be kept of any object.
func finish(object map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: object}
	u.SetManagedFields(nil)
	annotations := u.GetAnnotations()
	for key := range annotations {
		if !ours(key) {
			annotations[key] = removed
		}
	}
	u.SetAnnotations(annotations)
	redactAll(object)
	return object
}

// ours reports whether an annotation explains what Masthead, Crossplane or Cluster API do with an object.
func ours(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.ContainsFunc([]string{"masthead.dev", "crossplane.io", "cluster.x-k8s.io"}, func(d string) bool {
		return domain == d || strings.HasSuffix(domain, "."+d)
	})
}

// definition keeps a CompositeResourceDefinition with its schemas, without possible values.
func definition(u *unstructured.Unstructured) map[string]any {
	out := pick(u.Object, "spec", "status")
	versions, _, _ := unstructured.NestedSlice(out, "spec", "versions")
	for i := range versions {
		version, ok := versions[i].(map[string]any)
		if !ok {
			continue
		}
		if schema, ok, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema"); ok {
			version["schema"] = map[string]any{"openAPIV3Schema": withoutValues(schema)}
		}
	}
	if len(versions) > 0 {
		_ = unstructured.SetNestedSlice(out, versions, "spec", "versions")
	}
	return out
}

// withoutValues removes defaults, examples, descriptions, enums and constants from a schema, but not properties of
// these names.
func withoutValues(schema map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range schema {
		switch key {
		case "default", "example", "examples", "description", "enum", "const":
		case "properties", "patternProperties", "definitions", "dependencies":
			out[key] = eachSchema(value)
		case "items", "additionalProperties", "not", "allOf", "anyOf", "oneOf":
			out[key] = schemasIn(value)
		default:
			out[key] = value
		}
	}
	return out
}

func eachSchema(value any) any {
	named, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	out := map[string]any{}
	for name, s := range named {
		out[name] = schemasIn(s)
	}
	return out
}

func schemasIn(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return withoutValues(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = schemasIn(v[i])
		}
		return out
	}
	return value
}
