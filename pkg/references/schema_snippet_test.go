// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// TestSnippetIsThatOfTheGoTypes generates the schema of spec.references from the Go types and their markers, and
// compares it with the file that authors paste.
func TestSnippetIsThatOfTheGoTypes(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(testenv.Root(), "apis", "common", "v1alpha1", "reference_types.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	types := parseTypes(file)
	want := map[string]any{"references": types.schema(t, types["References"].fields[0])}
	got := snippet(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run make generate\n-what the Go types say, +config/references/schema.yaml:\n%s", diff)
	}
}

// TestSnippetIsRecognised: the controller takes a kind with the pasted schema for one with references.
func TestSnippetIsRecognised(t *testing.T) {
	data, _ := yaml.Marshal(snippet(t))
	var pasted map[string]apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict(data, &pasted); err != nil {
		t.Fatal(err)
	}
	whole := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: pasted}}})
	if !whole.DeclaresReferences() {
		t.Error("it is not recognised as spec.references")
	}
}

func snippet(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "references", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutDescriptions is a schema without its descriptions. A field that is named "description" is kept.
func withoutDescriptions(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if _, isText := field.(string); key != "description" || !isText {
				out[key] = withoutDescriptions(field)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, withoutDescriptions(e))
		}
		return out
	}
	return value
}

// goField is a field of a Go type, or the type itself: its comment without markers, and these.
type goField struct {
	name, text string
	markers    []string
	is         ast.Expr
	fields     []goField
}

type goTypes map[string]goField

func parseTypes(file *ast.File) goTypes {
	out := goTypes{}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.TYPE {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.TypeSpec) //nolint:forcetypeassert // A declaration of a type has nothing else.
			f := parseField(spec.Name.Name, decl.Doc, spec.Type)
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, member := range st.Fields.List {
					tag := reflect.StructTag(strings.Trim(member.Tag.Value, "`")).Get("json")
					name, _, _ := strings.Cut(tag, ",")
					f.fields = append(f.fields, parseField(name, member.Doc, member.Type))
				}
			}
			out[spec.Name.Name] = f
		}
	}
	return out
}

func parseField(name string, doc *ast.CommentGroup, is ast.Expr) goField {
	f := goField{name: name, is: is}
	var text []string
	for _, c := range doc.List {
		line := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ")
		if marker, ok := strings.CutPrefix(line, "+"); ok {
			f.markers = append(f.markers, marker)
		} else {
			text = append(text, line)
		}
	}
	f.text = strings.TrimSpace(strings.Join(text, "\n"))
	return f
}

// schema is what controller-gen generates for a field. It fails for unknown types and markers.
func (g goTypes) schema(t *testing.T, f goField) map[string]any {
	t.Helper()
	out := g.ofType(t, f.is)
	if f.text != "" {
		out["description"] = f.text
	}
	f.mark(t, out)
	return out
}

func (g goTypes) ofType(t *testing.T, is ast.Expr) map[string]any {
	t.Helper()
	switch is := is.(type) {
	case *ast.StarExpr:
		return g.ofType(t, is.X)
	case *ast.ArrayType:
		return map[string]any{"type": "array", "items": g.ofType(t, is.Elt)}
	case *ast.MapType:
		return map[string]any{"type": "object", "additionalProperties": g.ofType(t, is.Value)}
	case *ast.Ident:
		if is.Name == "string" {
			return map[string]any{"type": "string"}
		}
		of, known := g[is.Name]
		if !known {
			t.Fatalf("the type %s is not known", is.Name)
		}
		if len(of.fields) == 0 {
			return g.schema(t, of)
		}
		properties, required := map[string]any{}, []any{}
		for _, member := range of.fields {
			properties[member.name] = g.schema(t, member)
			for _, m := range member.markers {
				if m == "required" {
					required = append(required, member.name)
				}
			}
		}
		out := map[string]any{"type": "object", "properties": properties, "description": of.text}
		if len(required) > 0 {
			out["required"] = sorted(required)
		}
		of.mark(t, out)
		return out
	}
	t.Fatalf("a type is of a form that is not known: %T", is)
	return nil
}

func sorted(names []any) []any {
	for i := range names {
		for j := i; j > 0 && fmt.Sprint(names[j]) < fmt.Sprint(names[j-1]); j-- {
			names[j], names[j-1] = names[j-1], names[j]
		}
	}
	return names
}

var rule = regexp.MustCompile(`^rule="(.*)",message="(.*)"$`)

// mark applies markers to a schema.
func (f goField) mark(t *testing.T, out map[string]any) {
	t.Helper()
	number := map[string]string{
		"kubebuilder:validation:MinLength": "minLength", "kubebuilder:validation:MaxLength": "maxLength",
		"kubebuilder:validation:MinProperties": "minProperties", "kubebuilder:validation:MaxProperties": "maxProperties",
		"kubebuilder:validation:MinItems": "minItems", "kubebuilder:validation:MaxItems": "maxItems",
	}
	for _, m := range f.markers {
		name, value, _ := strings.Cut(m, "=")
		if key, ok := number[name]; ok {
			var n float64
			_, _ = fmt.Sscan(value, &n)
			out[key] = n
			continue
		}
		switch {
		case name == "optional", name == "required":
		case name == "listType":
			out["x-kubernetes-list-type"] = value
		case name == "listMapKey":
			out["x-kubernetes-list-map-keys"] = []any{value}
		case name == "kubebuilder:default":
			out["default"] = value
		case name == "kubebuilder:validation:Pattern":
			out["pattern"] = strings.Trim(value, "`")
		case name == "kubebuilder:validation:Enum":
			var values []any
			for v := range strings.SplitSeq(value, ";") {
				values = append(values, v)
			}
			out["enum"] = values
		case strings.HasPrefix(m, "kubebuilder:validation:XValidation:"):
			parts := rule.FindStringSubmatch(strings.TrimPrefix(m, "kubebuilder:validation:XValidation:"))
			if parts == nil {
				t.Fatalf("a rule cannot be read: %s", m)
			}
			rules, _ := out["x-kubernetes-validations"].([]any)
			out["x-kubernetes-validations"] = append(rules, map[string]any{"rule": parts[1], "message": parts[2]})
		default:
			t.Fatalf("the marker %q is not known", m)
		}
	}
}
