// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const kindsPreface = `# Kinds

` + generated + `
Every field of every kind of Masthead. A star after a field says that it is required. A page about each
kind, with examples, says more.
`

// kindPages are the pages about the kinds.
func kindPages() map[string]string {
	return map[string]string{
		"Application": "application.md", "ApplicationReport": "application.md#in-the-hub-applicationreports", "ClusterImport": "importer.md",
		"EnrollmentClass": "enrolment.md#the-enrollmentclass", "HealthRule": "health.md#healthrules",
	}
}

// opaque are fields of kinds of Kubernetes, which are not listed field by field.
func opaque() map[string]string {
	return map[string]string{"spec.healthCheck.template": "PodTemplateSpec of Kubernetes"}
}

// kinds returns the page of all fields.
func kinds(root string) (string, error) {
	var crds []apiextensionsv1.CustomResourceDefinition
	for _, folder := range []string{"bases", "workload"} {
		paths, err := filepath.Glob(filepath.Join(root, "config", "crd", folder, "*.yaml"))
		if err != nil {
			return "", err
		}
		for _, path := range paths {
			data, err := os.ReadFile(path) //nolint:gosec // A file of the repository.
			if err != nil {
				return "", err
			}
			var crd apiextensionsv1.CustomResourceDefinition
			if err := yaml.UnmarshalStrict(data, &crd); err != nil {
				return "", fmt.Errorf("cannot parse %s: %w", path, err)
			}
			crds = append(crds, crd)
		}
	}
	slices.SortFunc(crds, func(a, b apiextensionsv1.CustomResourceDefinition) int {
		return cmp.Compare(a.Spec.Names.Kind, b.Spec.Names.Kind)
	})
	var page strings.Builder
	fmt.Fprintf(&page, kindsPreface, "config/crd")
	for _, crd := range crds {
		text, err := kind(crd)
		if err != nil {
			return "", fmt.Errorf("cannot describe %s: %w", crd.Name, err)
		}
		page.WriteString(text)
	}
	return page.String(), nil
}

// kind returns the chapter about one kind.
func kind(crd apiextensionsv1.CustomResourceDefinition) (string, error) {
	names := crd.Spec.Names
	about, known := kindPages()[names.Kind]
	if !known {
		return "", fmt.Errorf("no page is known about the kind %s", names.Kind)
	}
	var text strings.Builder
	for _, version := range crd.Spec.Versions {
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(&text, "\n## %s\n\n%s\n\n", names.Kind, paragraph(cell(schema.Description)+" [More](../"+about+")"))
		fmt.Fprintf(&text, "| | |\n|---|---|\n| API version | `%s/%s` |\n| Scope | %s |\n", crd.Spec.Group, version.Name, crd.Spec.Scope)
		fmt.Fprintf(&text, "| Names | %s |\n", code(slices.Concat([]string{names.Plural, names.Singular}, names.ShortNames)))
		fmt.Fprintf(&text, "| Categories | %s |\n", code(names.Categories))
		for _, part := range []string{"spec", "status"} {
			property, exists := schema.Properties[part]
			if !exists {
				continue
			}
			fmt.Fprintf(&text, "\n### %s.%s\n\n%s\n", names.Kind, part, paragraph(cell(property.Description)+" "+rules(property)))
			text.WriteString("\n| Field | Type | Meaning |\n|---|---|---|\n")
			if err := fields(&text, part, property); err != nil {
				return "", err
			}
		}
	}
	return text.String(), nil
}

// fields adds a row for each field below a path.
func fields(rows *strings.Builder, path string, schema apiextensionsv1.JSONSchemaProps) error {
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property, at := schema.Properties[name], path+"."+name
		star := ""
		if slices.Contains(schema.Required, name) {
			star = " \\*"
		}
		inner, suffix := innermost(property)
		what, hidden := opaque()[at]
		switch {
		case hidden:
		case conditions(inner):
			what, hidden = "list of conditions", true
		default:
			what = typeOf(property)
		}
		meaning := property.Description
		if meaning == "" {
			meaning = inner.Description
		}
		limits, err := limits(property)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		fmt.Fprintf(rows, "| `%s`%s | %s | %s |\n", at, star, what, strings.TrimSpace(cell(meaning)+" "+limits+rules(property)))
		if hidden {
			continue
		}
		if err := fields(rows, at+suffix, inner); err != nil {
			return err
		}
	}
	return nil
}

// innermost returns the schema of the entries of lists and maps, and the notation for them in a path.
func innermost(schema apiextensionsv1.JSONSchemaProps) (apiextensionsv1.JSONSchemaProps, string) {
	switch {
	case schema.Items != nil && schema.Items.Schema != nil:
		inner, suffix := innermost(*schema.Items.Schema)
		return inner, "[]" + suffix
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		inner, suffix := innermost(*schema.AdditionalProperties.Schema)
		return inner, ".*" + suffix
	default:
		return schema, ""
	}
}

// conditions is whether a schema is the schema of a Kubernetes condition, which need not be explained in each kind.
func conditions(schema apiextensionsv1.JSONSchemaProps) bool {
	for _, name := range []string{"lastTransitionTime", "message", "reason", "status", "type"} {
		if _, exists := schema.Properties[name]; !exists {
			return false
		}
	}
	return true
}

func typeOf(schema apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "integer or string"
	case schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + typeOf(*schema.Items.Schema)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(*schema.AdditionalProperties.Schema)
	case schema.Format == "date-time":
		return "time"
	default:
		return schema.Type
	}
}

// limits describes the values that a field can have.
func limits(schema apiextensionsv1.JSONSchemaProps) (string, error) {
	var text strings.Builder
	if schema.Default != nil {
		fmt.Fprintf(&text, "Default: `%s`. ", schema.Default.Raw)
	}
	if len(schema.Enum) > 0 {
		values := make([]string, len(schema.Enum))
		for i, value := range schema.Enum {
			if err := json.Unmarshal(value.Raw, &values[i]); err != nil {
				return "", err
			}
		}
		fmt.Fprintf(&text, "One of %s. ", code(values))
	}
	for _, limit := range []struct {
		text  string
		value *int64
	}{
		{"At least %d characters. ", schema.MinLength}, {"At most %d characters. ", schema.MaxLength},
		{"At least %d entries. ", schema.MinItems}, {"At most %d entries. ", schema.MaxItems},
		{"At least %d entries. ", schema.MinProperties}, {"At most %d entries. ", schema.MaxProperties},
	} {
		if limit.value != nil {
			fmt.Fprintf(&text, limit.text, *limit.value)
		}
	}
	if schema.Minimum != nil {
		fmt.Fprintf(&text, "At least %v. ", *schema.Minimum)
	}
	if schema.Maximum != nil {
		fmt.Fprintf(&text, "At most %v. ", *schema.Maximum)
	}
	return text.String(), nil
}

// rules are the messages with which the API server rejects objects that break a rule.
func rules(schema apiextensionsv1.JSONSchemaProps) string {
	var texts []string
	for _, rule := range schema.XValidations {
		if rule.Message != "" {
			texts = append(texts, cell(rule.Message))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "Rules: " + strings.Join(texts, "; ") + "."
}
