// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// maxKinds bounds the managed kinds of one cluster.
const maxKinds = 200

// schemaFactor is the ratio of a schema's size in memory to its serialized size.
const schemaFactor = 12

// definitionKind is every definition of a cluster. Those that neither declare references nor mark fields for Secret
// data are not cached.
var definitionKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
	GroupVersionKind: schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	Resource:         "customresourcedefinitions",
	ClusterScoped:    true,
}

// declared is a kind whose objects have references, or, without a version, one that only has fields marked for Secret
// data: objects of other kinds reference them.
type declared struct {
	kind   kindwatch.Kind
	schema *references.Schema

	// marked are the fields marked for Secret data, in each served version that has any.
	marked map[string]*references.MarkedFields

	// definition and generation identify the content of the definition.
	definition string
	generation int64
	size       int64
}

var _ kindwatch.Record = &declared{}

// Equal implements kindwatch.Record.
func (d *declared) Equal(other kindwatch.Record) bool {
	o, ok := other.(*declared)
	return ok && d.definition == o.definition && d.generation == o.generation && d.kind == o.kind
}

// IndexKeys implements kindwatch.Record.
func (d *declared) IndexKeys() []string { return nil }

// Size implements kindwatch.Record.
func (d *declared) Size() int64 { return d.size }

// reduceDefinition keeps only definitions that declare references, or mark fields.
func reduceDefinition(_ kindwatch.Kind, obj *unstructured.Unstructured) (kindwatch.Record, bool) {
	if !mayDeclare(obj) && !mayMark(obj.Object["spec"]) {
		return nil, false
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(runtime.DeepCopyJSON(obj.Object), crd); err != nil {
		return nil, false
	}
	d := declaredBy(crd)
	return d, d != nil
}

// mayDeclare avoids converting most definitions: conversion is the greater part of the work.
func mayDeclare(obj *unstructured.Unstructured) bool {
	versions, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "versions")
	list, _ := versions.([]any)
	return slices.ContainsFunc(list, func(v any) bool {
		version, _ := v.(map[string]any)
		_, there, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", "references")
		return there
	})
}

// mayMark reports whether something in a definition looks like the mark of a field.
func mayMark(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		if v["format"] == references.FormatSecret {
			return true
		}
		for _, field := range v {
			if mayMark(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, mayMark)
	}
	return false
}

// declaredBy is the kind of a definition, in the storage version if that declares references, else in the first that
// does. If none does, it is without a version, or nil if no field is marked.
func declaredBy(crd *apiextensionsv1.CustomResourceDefinition) *declared {
	versions := slices.Clone(crd.Spec.Versions)
	slices.SortStableFunc(versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int {
		return cmp.Compare(rank(b), rank(a))
	})
	d := &declared{
		kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
			Resource:         crd.Spec.Names.Plural,
			ClusterScoped:    crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		},
		definition: string(crd.UID), generation: crd.Generation,
	}
	d.mark(versions)
	for i := range versions {
		v := &versions[i]
		if !v.Served || v.Schema == nil {
			continue
		}
		schemaOfKind := references.NewSchema(v.Schema.OpenAPIV3Schema)
		if !schemaOfKind.DeclaresReferences() {
			continue
		}
		d.kind.Version, d.kind.StatusSubresource = v.Name, v.Subresources != nil && v.Subresources.Status != nil
		d.schema = schemaOfKind
		d.size += schemaFactor * int64(v.Schema.Size())
		return d
	}
	if len(d.marked) == 0 {
		return nil
	}
	return d
}

// mark records the fields marked for Secret data, in each served version: the objects can be read in any of them.
func (d *declared) mark(versions []apiextensionsv1.CustomResourceDefinitionVersion) {
	d.marked = map[string]*references.MarkedFields{}
	for i := range versions {
		v := &versions[i]
		if !v.Served || v.Schema == nil {
			continue
		}
		if marked := references.NewMarkedFields(v.Schema.OpenAPIV3Schema); marked != nil {
			d.marked[v.Name] = marked
			d.size += marked.Size()
		}
	}
}

// markedIn returns the fields of a version of a kind that are marked for Secret data. A version without any, of a kind
// that has some in another version, may have them by other names: all of it is marked.
func (d *declared) markedIn(version string) *references.MarkedFields {
	if marked := d.marked[version]; marked != nil || len(d.marked) == 0 {
		return marked
	}
	return references.AllMarked()
}

func rank(v apiextensionsv1.CustomResourceDefinitionVersion) int {
	if v.Storage {
		return 1
	}
	return 0
}
