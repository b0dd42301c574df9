// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// A Schema is that of a kind, or of a part of one. nil means unknown.
type Schema struct {
	props *apiextensionsv1.JSONSchemaProps

	// marked are the fields of a whole kind that are marked for values from Secrets.
	marked *MarkedFields
}

// NewSchema returns the schema of a kind in one of its versions. The argument must not be changed afterwards.
func NewSchema(props *apiextensionsv1.JSONSchemaProps) *Schema {
	if props == nil {
		return nil
	}
	return &Schema{props: props, marked: NewMarkedFields(props)}
}

// newSchema returns the schema of a part; nil if it is not known.
func newSchema(props *apiextensionsv1.JSONSchemaProps) *Schema {
	if props == nil {
		return nil
	}
	return &Schema{props: props}
}

// at returns the schema of a field or an element; nil if it is not known.
func (s *Schema) at(segment fieldpath.Segment) *Schema {
	if s == nil {
		return nil
	}
	if segment.Type == fieldpath.SegmentIndex {
		if s.props.Items == nil {
			return nil
		}
		return newSchema(s.props.Items.Schema)
	}
	if field, ok := s.props.Properties[segment.Field]; ok {
		return newSchema(&field)
	}
	if s.props.AdditionalProperties != nil {
		return newSchema(s.props.AdditionalProperties.Schema)
	}
	return nil
}

func (s *Schema) field(path ...string) *Schema {
	for _, name := range path {
		s = s.at(fieldpath.Segment{Type: fieldpath.SegmentField, Field: name})
	}
	return s
}

func (s *Schema) hasType(want string) bool { return s != nil && s.props.Type == want }

// DeclaresReferences reports whether objects of the kind have spec.references in the shape of GenericReference: a list
// of objects with at least the fields resource, name, fromFieldPath and toFieldPath, all text.
func (s *Schema) DeclaresReferences() bool {
	list := s.field("spec", "references")
	if !list.hasType("array") {
		return false
	}
	item := list.at(fieldpath.Segment{Type: fieldpath.SegmentIndex})
	if !item.hasType("object") {
		return false
	}
	for _, name := range [...]string{"resource", "name", "fromFieldPath", "toFieldPath"} {
		if !item.field(name).hasType("string") {
			return false
		}
	}
	return true
}

// HasConditions reports whether the status of the kind's objects has conditions.
func (s *Schema) HasConditions() bool { return s.field("status", "conditions").hasType("array") }

// mayHoldSecret reports whether the author of the kind marked a field, or one that contains it, for values from
// Secrets.
func (s *Schema) mayHoldSecret(path fieldpath.Segments) bool {
	for _, segment := range path {
		if s = s.at(segment); s == nil {
			return false
		}
		if s.props.Format == FormatSecret {
			return true
		}
	}
	return false
}

// markedFields returns the fields of the kind that are marked for values from Secrets.
func (s *Schema) markedFields() *MarkedFields {
	if s == nil {
		return nil
	}
	return s.marked
}

// listKeys returns the fields that identify elements of a list that is merged element by element; nil for other lists.
func (s *Schema) listKeys() []string {
	if s == nil || ptr.Deref(s.props.XListType, "") != "map" {
		return nil
	}
	return s.props.XListMapKeys
}

// isListKey reports whether a field identifies elements of its list: another value is another element.
func (s *Schema) isListKey(path fieldpath.Segments) bool {
	if len(path) < 2 || path[len(path)-1].Type != fieldpath.SegmentField {
		return false
	}
	list, field := path[:len(path)-2], path[len(path)-1].Field
	for _, segment := range list {
		s = s.at(segment)
	}
	return slices.Contains(s.listKeys(), field)
}

// atomic reports whether server-side apply takes an object whole.
func (s *Schema) atomic() bool { return s != nil && ptr.Deref(s.props.XMapType, "") == "atomic" }
