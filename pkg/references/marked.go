// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// MarkedFields are the fields of a kind, in one version, that its author marked for what Secrets hold (FormatSecret).
// Nothing else of a schema is kept. nil has none.
type MarkedFields struct {
	// marked is whether the field itself is. What is below it is then not kept.
	marked bool

	// fields, others and elements are those of the fields, of any other field, and of the elements that lead to what is
	// marked.
	fields           map[string]*MarkedFields
	others, elements *MarkedFields
}

// NewMarkedFields returns those of a schema; nil if there are none.
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

// at is whether what a path with wildcards leads to is marked, is in something that is, or has something marked in it.
func (m *MarkedFields) at(path fieldpath.Segments) bool {
	switch {
	case m == nil:
		return false
	case m.marked, len(path) == 0:
		// Nothing is kept that leads to nothing marked.
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

// holdsSecret is whether a field of a source may hold what a Secret holds: it is one, or the field is marked for that.
func (p *pass) holdsSecret(source Source, path fieldpath.Segments) bool {
	return isSecret(source.GroupResource()) || p.isMarked(source, path)
}

// isMarked is whether a field of a source is marked for what Secrets hold, or one that it is in, or that is in it.
func (p *pass) isMarked(source Source, path fieldpath.Segments) bool {
	for _, f := range p.req.Tenancy.SecretFields {
		if f.GroupKind == source.GroupKind() && overlaps(f.FieldPath, path) {
			return true
		}
	}
	if p.req.Marked != nil {
		return p.req.Marked(source.GroupVersionKind).at(path)
	}
	own := p.req.Object.GroupVersionKind()
	switch source.GroupVersionKind {
	case own:
		return p.req.Schema.markedFields().at(path)
	case own.GroupKind().WithVersion(source.Version):
		// Its fields may have other names in another version, of which the schema is not known.
		return p.req.Schema.markedFields() != nil
	}
	return false
}

// overlaps is whether two paths with wildcards can lead to the same field, or to one that is in the other.
func overlaps(pattern string, path fieldpath.Segments) bool {
	segments, err := parsePath(pattern)
	if err != nil {
		return false
	}
	for i := range min(len(segments), len(path)) {
		if segments[i] != path[i] && !isWildcard(segments[i]) && !isWildcard(path[i]) {
			return false
		}
	}
	return true
}
