// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/fieldpath"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// FormatSecret is the format of a field into which what a Secret holds may be put. It is OpenAPI's own word for it.
// Rejected: an extension, x-..., which API servers prune; and an annotation of the CRD that lists fields, which does
// not travel with the schema from an XRD to the CRDs that Crossplane and Masthead make of it, and can be set by who may
// not change the schema.
const FormatSecret = "password"

// A Schema is that of a kind, or of a part of one. nil is one that is not known.
type Schema struct {
	props *apiextensionsv1.JSONSchemaProps

	// marked are the fields of a whole kind that are marked for what Secrets hold.
	marked *MarkedFields
}

// NewSchema returns the schema of a kind in one of its versions. It must not be changed any more.
func NewSchema(props *apiextensionsv1.JSONSchemaProps) *Schema {
	if props == nil {
		return nil
	}
	return &Schema{props: props, marked: NewMarkedFields(props)}
}

// partOf is the schema of a part; nil if it is not known.
func partOf(props *apiextensionsv1.JSONSchemaProps) *Schema {
	if props == nil {
		return nil
	}
	return &Schema{props: props}
}

// at is the schema of a field or an element; nil if it is not known.
func (s *Schema) at(segment fieldpath.Segment) *Schema {
	if s == nil {
		return nil
	}
	if segment.Type == fieldpath.SegmentIndex {
		if s.props.Items == nil {
			return nil
		}
		return partOf(s.props.Items.Schema)
	}
	if field, ok := s.props.Properties[segment.Field]; ok {
		return partOf(&field)
	}
	if s.props.AdditionalProperties != nil {
		return partOf(s.props.AdditionalProperties.Schema)
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

// DeclaresReferences is whether objects of the kind have spec.references in the shape of GenericReference: a list of
// objects with at least the fields resource, name, fromFieldPath and toFieldPath, all text.
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

// HasConditions is whether the status of the kind's objects has conditions.
func (s *Schema) HasConditions() bool { return s.field("status", "conditions").hasType("array") }

// mayHoldSecret is whether the author of the kind marked a field, or one that it is in, for what Secrets hold.
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

// markedFields are the fields of the kind that are marked for what Secrets hold.
func (s *Schema) markedFields() *MarkedFields {
	if s == nil {
		return nil
	}
	return s.marked
}

// listKeys are the fields by which elements of a list are told apart that is merged element by element; nil for any
// other list.
func (s *Schema) listKeys() []string {
	if s == nil || ptr.Deref(s.props.XListType, "") != "map" {
		return nil
	}
	return s.props.XListMapKeys
}

// isListKey is whether elements of the list in which a field is are told apart by it: another value is another element.
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

// atomic is whether server-side apply takes an object whole.
func (s *Schema) atomic() bool { return s != nil && ptr.Deref(s.props.XMapType, "") == "atomic" }

// mayHoldSecret is whether what a Secret holds may be put into a field.
func (p *pass) mayHoldSecret(target fieldpath.Segments) bool {
	if p.req.Schema.mayHoldSecret(target) {
		return true
	}
	gk := p.req.Object.GroupVersionKind().GroupKind()
	for _, f := range p.req.Tenancy.SecretFields {
		if f.GroupKind == gk && covers(f.FieldPath, target) {
			return true
		}
	}
	return false
}

// covers is whether a path with wildcards names a field, or one that it is in.
func covers(pattern string, target fieldpath.Segments) bool {
	segments, err := parsePath(pattern)
	if err != nil || len(segments) > len(target) || len(segments) < 2 {
		return false
	}
	for i, s := range segments {
		if !isWildcard(s) && s != target[i] {
			return false
		}
	}
	return true
}

// validIn says what is wrong about the name of an object. Names of some kinds have more characters than DNS allows,
// such as "system:node", but none has one that would make it more than one element of a path.
func validIn(name string) []string {
	if name == "" || name == "." || name == ".." || len(name) > 253 || strings.ContainsAny(name, "/%\\") ||
		strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return []string{"it cannot stand in the path of a request"}
	}
	return nil
}
