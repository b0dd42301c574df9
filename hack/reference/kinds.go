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
	"regexp"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const kindsPreface = `# Kinds

` + generated + `
Every field of every kind of Masthead. A star after a field says that it is required. A field that is like an earlier
one of its kind refers to it. A page about each kind, with examples, says more.
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
		text.WriteString(paragraph(fmt.Sprintf("`%s/%s`. Scope: %s. Names: %s. Categories: %s.", crd.Spec.Group, version.Name, crd.Spec.Scope,
			code(slices.Concat([]string{names.Plural, names.Singular}, names.ShortNames)), code(names.Categories))) + "\n")
		t := table{said: map[string]string{}}
		for _, part := range []string{"spec", "status"} {
			property, exists := schema.Properties[part]
			if !exists {
				continue
			}
			t.rows.Reset()
			if err := t.fields(part, property); err != nil {
				return "", err
			}
			fmt.Fprintf(&text, "\n### %s.%s\n\n%s\n", names.Kind, part, paragraph(stated(part, cell(property.Description))+" "+rules(property)))
			fmt.Fprintf(&text, "\n| Field | Type | Meaning |\n|---|---|---|\n%s", t.rows.String())
		}
	}
	return text.String(), nil
}

// table has the rows of the fields of a kind.
type table struct {
	rows strings.Builder
	// said has the path of the field with which something was said first: a meaning, rules, or fields.
	said map[string]string
}

// fields adds a row for each field below a path.
func (t *table) fields(path string, schema apiextensionsv1.JSONSchemaProps) error {
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
		case selector(inner):
			what, hidden = "LabelSelector of Kubernetes", true
		default:
			what = typeOf(property)
		}
		meaning, err := t.meaning(name, at, property)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if !hidden && len(inner.Properties) > 1 {
			below, err := json.Marshal([]any{inner.Properties, inner.Required})
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			if first := t.first(string(below), at); first != at {
				hidden = true
				if meaning != as(first) {
					meaning += " Fields: as of `" + first + "`."
				}
			}
		}
		fmt.Fprintf(&t.rows, "| `%s`%s | %s | %s |\n", at, star, what, meaning)
		if hidden {
			continue
		}
		if err := t.fields(at+suffix, inner); err != nil {
			return err
		}
	}
	return nil
}

// first returns the path of the field with which something was said first, which is the path given if it was not yet.
func (t *table) first(what, path string) string {
	if _, said := t.said[what]; !said {
		t.said[what] = path
	}
	return t.said[what]
}

// as refers to a field.
func as(path string) string { return "As `" + path + "`." }

// meaning returns what a field means, and the values that it can have. What was said of an earlier field is not
// repeated if it is long.
func (t *table) meaning(name, path string, property apiextensionsv1.JSONSchemaProps) (string, error) {
	const long = 6
	about := property.Description
	if about == "" {
		inner, _ := innermost(property)
		about = inner.Description
	}
	limits, err := limits(property, about)
	if err != nil {
		return "", err
	}
	text, rules := strings.TrimSpace(stated(name, cell(about))+" "+limits), rules(property)
	if words := strings.Fields(text + " " + rules); len(words) > long {
		if first := t.first(strings.Join(words, " "), path); first != path {
			return as(first), nil
		}
	}
	if len(strings.Fields(rules)) > long {
		if first := t.first(rules, path); first != path {
			rules = "Rules: as of `" + first + "`."
		}
	}
	return strings.TrimSpace(text + " " + rules), nil
}

// stated returns the description of a field without the name of the field before a verb, which the table has already.
func stated(name, description string) string {
	rest, found := strings.CutPrefix(description, name+" ")
	verb, after, _ := strings.Cut(rest, " ")
	switch {
	case !found:
		if rest, found = strings.CutPrefix(description, name+", "); !found {
			rest = description
		}
	case verb == "is" || verb == "are":
		rest = after
	case !strings.HasSuffix(strings.TrimRight(verb, ","), "s") || verb == "as":
		rest = description
	}
	word, _, _ := strings.Cut(rest, " ")
	switch {
	case rest == "" || strings.ContainsFunc(word[1:], unicode.IsUpper):
		return rest // The name of a field.
	case word == "id":
		return "ID" + rest[len(word):]
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
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

// selector is whether a schema is that of a label selector of Kubernetes. Masthead's own has limits.
func selector(schema apiextensionsv1.JSONSchemaProps) bool {
	expressions, exists := schema.Properties["matchExpressions"]
	_, labels := schema.Properties["matchLabels"]
	return exists && labels && len(schema.Properties) == 2 && expressions.MaxItems == nil
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

// limits describes the values that a field can have, as far as its description does not name them.
func limits(schema apiextensionsv1.JSONSchemaProps, description string) (string, error) {
	var text strings.Builder
	if schema.Default != nil {
		fmt.Fprintf(&text, "Default: `%s`. ", schema.Default.Raw)
	}
	values, named := make([]string, len(schema.Enum)), true
	for i, value := range schema.Enum {
		if err := json.Unmarshal(value.Raw, &values[i]); err != nil {
			return "", err
		}
		named = named && regexp.MustCompile(`\b`+regexp.QuoteMeta(values[i])+`\b`).MatchString(description)
	}
	if !named {
		fmt.Fprintf(&text, "One of %s. ", code(values))
	}
	for _, r := range []struct {
		unit        string
		least, most *int64
	}{
		{"characters", schema.MinLength, schema.MaxLength},
		{"entries", schema.MinItems, schema.MaxItems},
		{"entries", schema.MinProperties, schema.MaxProperties},
	} {
		switch {
		case r.least != nil && r.most != nil:
			fmt.Fprintf(&text, "%d to %d %s. ", *r.least, *r.most, r.unit)
		case r.least != nil:
			fmt.Fprintf(&text, "At least %d %s. ", *r.least, r.unit)
		case r.most != nil:
			fmt.Fprintf(&text, "At most %d %s. ", *r.most, r.unit)
		}
	}
	if schema.Minimum != nil {
		fmt.Fprintf(&text, "At least %v. ", *schema.Minimum)
	}
	if schema.Maximum != nil {
		fmt.Fprintf(&text, "At most %v. ", *schema.Maximum)
	}
	return strings.TrimSpace(text.String()), nil
}

// rules are the messages with which the API server rejects objects that break a rule.
func rules(schema apiextensionsv1.JSONSchemaProps) string {
	var texts []string
	for _, rule := range schema.XValidations {
		if text := cell(rule.Message); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "Rules: " + strings.Join(texts, "; ") + "."
}
