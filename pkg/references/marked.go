// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// FormatSecret is the format of a field that may hold values from Secrets. It is OpenAPI's own term. Rejected: an
// extension, x-..., which API servers prune; and an annotation of the CRD that lists fields, which is not propagated
// with the schema from an XRD to the CRDs that Crossplane and Masthead generate, and can be set by users who may not
// change the schema.
const FormatSecret = "password"

// MarkedFields are the fields of a kind, in one version, that its author marked for values from Secrets (FormatSecret).
// Nothing else of a schema is kept. nil has none.
type MarkedFields struct {
	// marked says that the field itself is marked. Its descendants are then not kept.
	marked bool

	// fields, others and elements lead to the marked fields below: by field, by any other field, and by list element.
	fields           map[string]*MarkedFields
	others, elements *MarkedFields
}

// NewMarkedFields returns the marked fields of a schema; nil if there are none.
func NewMarkedFields(props *apiextensionsv1.JSONSchemaProps) *MarkedFields {
	switch {
	case props == nil:
		return nil
	case props.Format == FormatSecret:
		return &MarkedFields{marked: true}
	}
	m := MarkedFields{}
	for name := range props.Properties {
		field := props.Properties[name]
		if marked := NewMarkedFields(&field); marked != nil {
			if m.fields == nil {
				m.fields = map[string]*MarkedFields{}
			}
			m.fields[name] = marked
		}
	}
	if props.AdditionalProperties != nil {
		m.others = NewMarkedFields(props.AdditionalProperties.Schema)
	}
	if props.Items != nil {
		m.elements = NewMarkedFields(props.Items.Schema)
	}
	if m.fields == nil && m.others == nil && m.elements == nil {
		return nil
	}
	return &m
}

// AllMarked returns the marks of a kind all of whose fields count as marked.
func AllMarked() *MarkedFields { return &MarkedFields{marked: true} }

// Size returns the approximate size in bytes in memory.
func (m *MarkedFields) Size() int64 {
	if m == nil {
		return 0
	}
	const itself, entry = 64, 48
	n := itself + m.others.Size() + m.elements.Size()
	for name, field := range m.fields {
		n += entry + int64(len(name)) + field.Size()
	}
	return n
}

// at reports whether the field at a path with wildcards, or one of its ancestors or descendants, is marked.
func (m *MarkedFields) at(path fieldpath.Segments) bool {
	switch {
	case m == nil:
		return false
	case m.marked, len(path) == 0:
		// Only entries that lead to marked fields are kept.
		return true
	case isWildcard(path[0]):
		for _, field := range m.fields {
			if field.at(path[1:]) {
				return true
			}
		}
		return m.others.at(path[1:]) || m.elements.at(path[1:])
	case path[0].Type == fieldpath.SegmentIndex:
		return m.elements.at(path[1:])
	}
	if field, known := m.fields[path[0].Field]; known {
		return field.at(path[1:])
	}
	return m.others.at(path[1:])
}
