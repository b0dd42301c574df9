// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Uncontested returns the part of a Result that may be applied to an object, which has all of its managedFields, and
// why the rest must not; nil if there is none. Who applies an object applies it again: a field that is in what they
// apply would change back and forth, without end, also one that they apply empty. Who updated a field once does not.
func Uncontested(before *unstructured.Unstructured, result Result, schema *Schema) (Result, *Error) {
	others := appliers(before)
	var filled []string
	var contested *Error
	for _, path := range result.Filled {
		segments, _ := fieldpath.Parse(path) // ApplyConfiguration fails if it is not valid.
		manager, owned := owner(others, before.Object, segments, schema)
		switch {
		case owned == nil:
			filled = append(filled, path)
		case contested == nil:
			what := "the field"
			if len(owned) < len(segments) {
				what = owned.String() // It is applied whole.
			}
			contested = &Error{
				Index: -1, Reason: commonv1alpha1.ReasonTargetRejected, Path: path,
				Cause: fmt.Errorf("%s is applied by %q: remove it from what that applies", what, manager),
			}
		}
	}
	result.Filled = filled
	return result, contested
}

// owner returns the first applier that owns a field of an object, and what it owns; nil if there is none.
func owner(others []applier, object map[string]any, path fieldpath.Segments, schema *Schema) (string, fieldpath.Segments) {
	for _, other := range others {
		if owned := other.owns(object, path, schema); owned != nil {
			return other.manager, owned
		}
	}
	return "", nil
}

// An applier is a manager that applies an object, with its fields in the form of managedFields, or with the object that
// it applied on the client's side.
type applier struct {
	manager string
	fields  map[string]any
	object  map[string]any

	// keys are those of list elements in fields, by their names there.
	keys map[string]map[string]any
}

// appliers returns the appliers of an object, except Masthead's: they do not apply what references fill.
func appliers(obj *unstructured.Unstructured) []applier {
	var out []applier
	client := kubectl
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || isOurs(entry.Manager) {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, applier{manager: entry.Manager, fields: fields, keys: map[string]map[string]any{}})
			continue
		}
		annotation := fields
		for _, name := range []string{"f:metadata", "f:annotations", "f:" + corev1.LastAppliedConfigAnnotation} {
			annotation, _ = annotation[name].(map[string]any)
		}
		if annotation != nil {
			client = entry.Manager
		}
	}
	var object map[string]any
	if json.Unmarshal([]byte(obj.GetAnnotations()[corev1.LastAppliedConfigAnnotation]), &object) == nil {
		out = append(out, applier{manager: client, object: object})
	}
	return out
}

// kubectl is how the names of kubectl as a manager begin. People run it, and not all the time.
const kubectl = "kubectl"

func isOurs(manager string) bool {
	return manager == fleetv1alpha1.FieldManager || strings.HasPrefix(manager, fleetv1alpha1.FieldManager+"-")
}

// owns returns the path of a field of an object, or of what contains it, if an applier applies that or a part of it;
// nil if not.
func (a applier) owns(object map[string]any, path fieldpath.Segments, schema *Schema) fieldpath.Segments {
	if a.object != nil {
		return held(a.object, path, !strings.HasPrefix(a.manager, kubectl))
	}
	var value any = object
	fields := a.fields
	for i, s := range path {
		if _, itself := fields["."]; len(fields) == 0 || itself && len(fields) == 1 {
			if _, isList := value.([]any); isList || schema.atomic() {
				return path[:i]
			}
			return nil
		}
		next, err := step(value, s)
		if err != nil {
			next = nil
		}
		name := "f:" + s.Field
		if s.Type == fieldpath.SegmentIndex {
			name = a.elementNamed(fields, next)
		}
		member, there := fields[name].(map[string]any)
		if !there {
			return nil
		}
		value, fields, schema = next, member, schema.at(s)
	}
	return path
}

// elementNamed returns the name that managedFields have for an element of a list; empty if there is none.
func (a applier) elementNamed(fields map[string]any, element any) string {
	for name := range fields {
		if raw, ok := strings.CutPrefix(name, "v:"); ok && isValue(element, raw) {
			return name
		}
		raw, ok := strings.CutPrefix(name, "k:")
		if !ok {
			continue
		}
		keys, known := a.keys[name]
		if !known {
			_ = json.Unmarshal([]byte(raw), &keys) // None are found then.
			a.keys[name] = keys
		}
		if len(keys) > 0 && hasKeys(element, keys) {
			return name
		}
	}
	return ""
}

// held returns the path of a field that an applied object has. An applier at work all the time also has those in its
// lists, which are replaced whole.
func held(value any, path fieldpath.Segments, lists bool) fieldpath.Segments {
	for i, s := range path {
		if list, isList := value.([]any); isList && lists && len(list) > 0 {
			return path[:i]
		}
		next, err := step(value, s)
		if err != nil {
			return nil
		}
		value = next
	}
	if value == nil {
		return nil
	}
	return path
}
