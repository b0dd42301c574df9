// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Annotations on reflected objects.
const (
	// ManagedBy is the value of cluster.x-k8s.io/managed-by on everything that is reflected.
	ManagedBy = "crossplane"
	// ReplicasManagedBy is the value of cluster.x-k8s.io/replicas-managed-by on MachinePools.
	ReplicasManagedBy = "masthead-importer"
	// ObservedInstanceTypesAnnotation holds all instance types of a pool, separated by commas: Cluster API has room for
	// one.
	ObservedInstanceTypesAnnotation = "fleet.masthead.dev/observed-instance-types"
	// ObservedImageTypeAnnotation holds the image type of a pool where the installed kind does not know it.
	ObservedImageTypeAnnotation = "fleet.masthead.dev/observed-image-type"
)

// builder builds one reflected object. Every value is checked against the schema of the installed kind: what does not
// fit is left out and reported, with the default that applies instead.
type builder struct {
	object *unstructured.Unstructured
	schema *apiextensionsv1.JSONSchemaProps
	notes  *notes
}

func (b *builder) label() string { return b.object.GetKind() + "/" + b.object.GetName() }

// set sets a field, by its path with dots. Nil, "" and an empty list mean that nothing was observed: nothing is set.
func (b *builder) set(path string, value any) {
	plain := plainValue(value)
	if plain == nil {
		return
	}
	fields := strings.Split(path, ".")
	field := at(b.schema, fields)
	if reason := misfit(field, plain); reason != "" {
		b.lossy(path, scalar(plain), reason)
		return
	}
	// The path leads through objects that only this builder made.
	_ = unstructured.SetNestedField(b.object.Object, plain, fields...)
}

// setDone says that a step of the contract with Cluster API is done: in the field that the contract v1beta1 has for it,
// in that of v1beta2, or in both, as the installed kind has them.
func (b *builder) setDone(v1beta1, v1beta2 string) {
	next := b.has(v1beta2)
	if next {
		b.set(v1beta2, true)
	}
	if !next || b.has(v1beta1) {
		b.set(v1beta1, true)
	}
}

// has reports whether the installed kind has a field.
func (b *builder) has(path string) bool { return at(b.schema, strings.Split(path, ".")) != nil }

// unfit returns what the spec still needs. Empty means nothing.
func (b *builder) unfit() string {
	spec, _ := b.object.Object["spec"].(map[string]any)
	return misfitRequired(at(b.schema, []string{"spec"}), spec)
}

// lossy reports an observation that is missing from the field.
func (b *builder) lossy(path, observed, reason string) {
	b.notes.add(Lossy{
		Object: b.label(), Field: path, Observed: clean(observed), Default: clean(defaultValue(at(b.schema, strings.Split(path, ".")))), Reason: reason,
	})
}

// knows reports whether the installed kind accepts the value.
func (b *builder) knows(path, value string) bool {
	return misfit(at(b.schema, strings.Split(path, ".")), value) == ""
}

// setEach sets a list of objects. One that does not fit is left out and reported; the others stay.
func (b *builder) setEach(path string, values []map[string]any) {
	item := items(at(b.schema, strings.Split(path, ".")))
	var fit []any
	for _, value := range values {
		fitting := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			plain := plainValue(value[key])
			if plain == nil {
				// An empty text is a value where the schema requires the field, e.g. the value of a taint.
				text, ok := value[key].(string)
				if !ok || !required(item, key) {
					continue
				}
				plain = text
			}
			if reason := misfit(at(item, []string{key}), plain); reason != "" {
				b.lossy(path+"[]."+key, describe(value), reason)
				continue
			}
			fitting[key] = plain
		}
		if reason := misfit(item, fitting); reason != "" {
			b.lossy(path, describe(value), reason)
			continue
		}
		fit = append(fit, fitting)
	}
	b.set(path, fit)
}

func required(s *apiextensionsv1.JSONSchemaProps, field string) bool {
	if s == nil {
		return false
	}
	return slices.Contains(s.Required, field)
}

// describe names an item of a list in a message.
func describe(value map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(value)) {
		if plain := plainValue(value[key]); plain != nil && scalar(plain) != "" {
			parts = append(parts, key+"="+scalar(plain))
		}
	}
	return strings.Join(parts, " ")
}

// annotate writes an annotation that says what no field can.
func (b *builder) annotate(key, value string) {
	if value == "" {
		return
	}
	b.object.SetAnnotations(labels.Merge(b.object.GetAnnotations(), map[string]string{key: value}))
}

// plainValue converts a value to the form of unstructured objects, or nil if nothing is to be set.
func plainValue(value any) any {
	switch v := value.(type) {
	case *bool:
		if v != nil {
			return *v
		}
	case *int32:
		if v != nil {
			return int64(*v)
		}
	case int32:
		return int64(v)
	case bool, int64:
		return v
	case string:
		if v != "" {
			return v
		}
	default:
		return plainCollection(value)
	}
	return nil
}

// plainCollection is the list or the object, or nil where it is empty.
func plainCollection(value any) any {
	switch v := value.(type) {
	case []string:
		if len(v) > 0 {
			out := make([]any, len(v))
			for i, s := range v {
				out[i] = s
			}
			return out
		}
	case map[string]string:
		if len(v) > 0 {
			out := make(map[string]any, len(v))
			for key, s := range v {
				out[key] = s
			}
			return out
		}
	case []any:
		if len(v) > 0 {
			return v
		}
	case map[string]any:
		if len(v) > 0 {
			return v
		}
	}
	return nil
}

// withStatus starts the status of an object: the status subresource takes nothing else.
func (b *builder) withStatus() *builder {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(b.object.GroupVersionKind())
	object.SetNamespace(b.object.GetNamespace())
	object.SetName(b.object.GetName())
	return &builder{object: object, schema: b.schema, notes: b.notes}
}

// setInstanceTypes sets the one type there is room for, and keeps them all in an annotation.
func (b *builder) setInstanceTypes(field string, types []string) {
	if len(types) == 0 {
		b.lossy(field, "", "The instance type is not observed")
		return
	}
	b.set(field, types[0])
	if len(types) > 1 {
		b.annotate(ObservedInstanceTypesAnnotation, strings.Join(types, ","))
		b.lossy(field, strings.Join(types, ","), "The field can hold only one of several instance types")
	}
}

// setTaints sets taints with the effects as the kind spells them.
func (b *builder) setTaints(field string, taints []Taint, spelling map[string]string) {
	values := make([]map[string]any, len(taints))
	for i, t := range taints {
		effect := t.Effect
		if spelling != nil {
			effect = spelling[t.Effect]
		}
		values[i] = map[string]any{"key": t.Key, "value": t.Value, "effect": effect}
	}
	b.setEach(field, values)
}

// setEndpoint sets the endpoint in a field of host and port.
func (b *builder) setEndpoint(path string, e Endpoint) {
	b.set(path, map[string]any{"host": e.Host, "port": int64(e.Port)})
}
