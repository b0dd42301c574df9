// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schemas are those of the kinds that the hub serves, by kind. Enums grow with each release of a provider, so they are
// read from what is installed and not written down here.
type Schemas map[schema.GroupVersionKind]*apiextensionsv1.JSONSchemaProps

// NewSchemas takes the schemas of all served versions out of CRDs.
func NewSchemas(crds ...*apiextensionsv1.CustomResourceDefinition) Schemas {
	out := Schemas{}
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if v.Served && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
				out[gvk] = v.Schema.OpenAPIV3Schema
			}
		}
	}
	return out
}

// NotServedError means that the hub does not serve a kind that is reflected.
type NotServedError struct {
	Kind schema.GroupVersionKind
}

// Error implements error.
func (e *NotServedError) Error() string {
	return fmt.Sprintf("cannot reflect the cluster: the hub does not serve %s of %s", e.Kind.Kind, e.Kind.GroupVersion())
}

// at is the schema of a field, or nil.
func at(s *apiextensionsv1.JSONSchemaProps, path []string) *apiextensionsv1.JSONSchemaProps {
	for _, field := range path {
		if s == nil {
			return nil
		}
		next, ok := s.Properties[field]
		if !ok {
			return nil
		}
		s = &next
	}
	return s
}

// items is the schema of the items of a list, or nil.
func items(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s == nil || s.Items == nil {
		return nil
	}
	return s.Items.Schema
}

// misfit returns why an API server with this schema would refuse or drop a value. Empty means that it fits. CEL rules
// are not evaluated: the controller's write still may be refused, and then reports that.
func misfit(s *apiextensionsv1.JSONSchemaProps, value any) string {
	if s == nil {
		return "The installed version of the kind has no such field"
	}
	switch v := value.(type) {
	case string:
		return misfitText(s, v)
	case int64:
		return misfitNumber(s, v)
	case bool:
		if s.Type != "boolean" {
			return "The field is not true or false"
		}
	case []any:
		return misfitList(s, v)
	case map[string]any:
		return misfitObject(s, v)
	default:
		return "The type of the value is not supported"
	}
	return ""
}

func misfitText(s *apiextensionsv1.JSONSchemaProps, v string) string {
	length := int64(utf8.RuneCountInString(v))
	switch {
	case s.Type != "string":
		return "The field is not a string"
	case len(s.Enum) > 0 && !slices.Contains(enumValues(s), v):
		return "The field does not support the value"
	case s.MaxLength != nil && length > *s.MaxLength, s.MinLength != nil && length < *s.MinLength:
		return "The field does not allow a text of this length"
	case s.Pattern != "":
		if pattern, err := regexp.Compile(s.Pattern); err != nil || !pattern.MatchString(v) {
			return "The field does not allow a text of this form"
		}
	}
	return ""
}

func enumValues(s *apiextensionsv1.JSONSchemaProps) []string {
	out := make([]string, 0, len(s.Enum))
	for _, raw := range s.Enum {
		var v string
		if json.Unmarshal(raw.Raw, &v) == nil {
			out = append(out, v)
		}
	}
	return out
}

func misfitNumber(s *apiextensionsv1.JSONSchemaProps, v int64) string {
	switch {
	case s.Type != "integer" && s.Type != "number":
		return "The field is not a number"
	case s.Format == "int32" && v > math.MaxInt32,
		s.Minimum != nil && float64(v) < *s.Minimum, s.Maximum != nil && float64(v) > *s.Maximum:
		return "The number is out of the field's range"
	}
	return ""
}

func misfitList(s *apiextensionsv1.JSONSchemaProps, v []any) string {
	switch {
	case s.Type != "array":
		return "The field is not a list"
	case s.MaxItems != nil && int64(len(v)) > *s.MaxItems, s.MinItems != nil && int64(len(v)) < *s.MinItems:
		return "The field does not allow a list of this length"
	}
	for _, item := range v {
		if reason := misfit(items(s), item); reason != "" {
			return reason
		}
	}
	return ""
}

func misfitObject(s *apiextensionsv1.JSONSchemaProps, v map[string]any) string {
	if s.Type != "object" {
		return "The field is not an object"
	}
	if reason := misfitRequired(s, v); reason != "" {
		return reason
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		field := at(s, []string{key})
		if field == nil && s.AdditionalProperties != nil {
			field = s.AdditionalProperties.Schema
		}
		if reason := misfit(field, v[key]); reason != "" {
			return reason
		}
	}
	return ""
}

// misfitRequired says which required field of an object has neither a value nor a default.
func misfitRequired(s *apiextensionsv1.JSONSchemaProps, v map[string]any) string {
	if s == nil {
		return ""
	}
	for _, field := range s.Required {
		if _, ok := v[field]; !ok && defaultValue(at(s, []string{field})) == "" {
			return "There is no value for " + field
		}
	}
	return ""
}

// defaultValue is the default of a field as text, or "".
func defaultValue(s *apiextensionsv1.JSONSchemaProps) string {
	if s == nil || s.Default == nil {
		return ""
	}
	var text string
	if json.Unmarshal(s.Default.Raw, &text) == nil {
		return text
	}
	return string(s.Default.Raw)
}
