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

// Contested returns why a Result must not be applied to an object, which has all of its managedFields; nil if it may.
// Who applies an object applies it again: a field that is in what they apply would change back and forth, without end,
// also one that they apply empty. Who updated a field once does not.
func Contested(before *unstructured.Unstructured, result Result, schema *Schema) *Error {
	others := appliers(before)
	for _, path := range result.Filled {
		segments, err := fieldpath.Parse(path)
		if err != nil {
			continue // ApplyConfiguration fails.
		}
		for _, other := range others {
			if other.owns(before.Object, segments, schema) {
				return &Error{
					Index: -1, Reason: commonv1alpha1.ReasonTargetRejected, Path: path,
					Cause: fmt.Errorf("the field is applied by %q: remove it from what that applies", other.manager),
				}
			}
		}
	}
	return nil
}

// An applier is a manager that applies an object, with its fields in the form of managedFields, or with the object that
// it applied on the client's side.
type applier struct {
	manager string
	fields  map[string]any
	object  map[string]any
}

// appliers returns the appliers of an object, except Masthead's: they do not apply what references fill.
func appliers(obj *unstructured.Unstructured) []applier {
	var out []applier
	client := "kubectl apply"
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || isOurs(entry.Manager) {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			out = append(out, applier{manager: entry.Manager, fields: fields})
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

func isOurs(manager string) bool {
	return manager == fleetv1alpha1.FieldManager || strings.HasPrefix(manager, fleetv1alpha1.FieldManager+"-")
}

// owns reports whether an applier applies a field of an object, a part of it, or all of something that contains it.
func (a applier) owns(object map[string]any, path fieldpath.Segments, schema *Schema) bool {
	if a.object != nil {
		return holds(a.object, path)
	}
	var value any = object
	fields := a.fields
	for _, s := range path {
		if _, itself := fields["."]; len(fields) == 0 || itself && len(fields) == 1 {
			_, isList := value.([]any)
			return isList || schema.atomic()
		}
		next, err := step(value, s)
		if err != nil {
			next = nil
		}
		name := "f:" + s.Field
		if s.Type == fieldpath.SegmentIndex {
			name = elementNamed(fields, next)
		}
		member, there := fields[name].(map[string]any)
		if !there {
			return false
		}
		value, fields, schema = next, member, schema.at(s)
	}
	return true
}

// elementNamed returns the name that managedFields have for an element of a list; empty if there is none.
func elementNamed(fields map[string]any, element any) string {
	for name := range fields {
		if raw, ok := strings.CutPrefix(name, "v:"); ok && isValue(element, raw) {
			return name
		}
		keys := map[string]any{}
		if raw, ok := strings.CutPrefix(name, "k:"); ok && json.Unmarshal([]byte(raw), &keys) == nil && hasKeys(element, keys) {
			return name
		}
	}
	return ""
}

// holds reports whether an applied object has a field, or a list that contains it: lists are replaced whole.
func holds(value any, path fieldpath.Segments) bool {
	for _, s := range path {
		if list, isList := value.([]any); isList {
			return len(list) > 0
		}
		next, err := step(value, s)
		if err != nil {
			return false
		}
		value = next
	}
	return value != nil
}
