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
	"strings"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Schemas are what the hub serves, by kind. Enums grow with each release of a provider, so they are read from what is
// installed and not written down here.
type Schemas map[schema.GroupKind]Schema

// Schema is the version of a kind that imports use, and its schema.
type Schema struct {
	Version string
	*apiextensionsv1.JSONSchemaProps
}

// Kind is a kind in the version that imports use.
func (s Schemas) Kind(kind schema.GroupKind) schema.GroupVersionKind {
	return kind.WithVersion(s[kind].Version)
}

// Managed is a kind of managed resource as imports use it. It prefers the namespaced group, whose Secrets stay in the
// namespace of the import.
func (s Schemas) Managed(kind Kind) (gvk schema.GroupVersionKind, namespaced, found bool) {
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		if _, found := s[gk]; found {
			return s.Kind(gk), gk == kind.Namespaced(), true
		}
	}
	return schema.GroupVersionKind{}, false, false
}

// Observed is the schema without all but what the provider observes.
func (s Schema) Observed() Schema {
	out := Schema{Version: s.Version}
	if observed := at(s.JSONSchemaProps, []string{"status", "atProvider"}); observed != nil {
		status := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"atProvider": *observed}}
		out.JSONSchemaProps = &apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"status": status}}
	}
	return out
}

// NewSchema takes a schema out of a CRD, or returns a NotServedError.
func NewSchema(crd *apiextensionsv1.CustomResourceDefinition) (Schema, error) {
	served := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, v := range crd.Spec.Versions {
		if v.Served && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			served[v.Name] = v.Schema.OpenAPIV3Schema
		}
	}
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	name, reason := chooseVersion(kind, crd.Labels, slices.Collect(maps.Keys(served)))
	if served[name] == nil {
		return Schema{}, &NotServedError{Kind: kind, Reason: reason}
	}
	return Schema{Version: name, JSONSchemaProps: served[name]}, nil
}

// contracts are those of Cluster API that reflections fulfil, the newest first.
var contracts = []string{"v1beta2", "v1beta1"}

// managedVersion is the version of managed resources that all Crossplane providers serve.
const managedVersion = "v1beta1"

// contractLabel tells the label for a contract from the others of Cluster API.
var contractLabel = regexp.MustCompile(`^cluster\.x-k8s\.io/v[0-9]`)

// chooseVersion chooses the version of a kind, and says where it comes from in case that it is not served. Cluster API
// itself uses the newest that a label names for the newest contract, so no other is taken then.
func chooseVersion(kind schema.GroupKind, labels map[string]string, served []string) (name, reason string) {
	if kind.Group == clusterv1.GroupVersion.Group {
		return clusterv1.GroupVersion.Version, "Masthead writes version " + clusterv1.GroupVersion.Version
	}
	for _, contract := range contracts {
		label := clusterv1.GroupVersion.Group + "/" + contract
		if named := labels[label]; named != "" {
			return newest(strings.Split(named, "_")), fmt.Sprintf("the label %s of its CRD names %q", label, named)
		}
	}
	for label := range labels {
		if contractLabel.MatchString(label) {
			return "", "the labels of its CRD name no version for the contracts " + strings.Join(contracts, " and ")
		}
	}
	switch {
	case len(served) == 0:
		return "", "its CRD serves no version"
	case strings.HasSuffix(kind.Group, ".upbound.io") && slices.Contains(served, managedVersion):
		return managedVersion, ""
	default:
		return newest(served), ""
	}
}

// newest is the first version by the priority that Kubernetes gives them.
func newest(versions []string) string {
	return slices.MaxFunc(versions, version.CompareKubeAwareVersionStrings)
}

// NotServedError means that the hub does not serve a kind that is reflected, or not in the version that is needed.
type NotServedError struct {
	Kind   schema.GroupKind
	Reason string
}

// Error implements error.
func (e *NotServedError) Error() string {
	return fmt.Sprintf("the hub does not serve %s as it is needed: %s", e.Kind, e.Reason)
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
