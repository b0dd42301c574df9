// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestMeaning(t *testing.T) {
	for name, tc := range map[string]struct{ reason, comment, want string }{
		"Colon":   {"The name is in the first column.", "ReasonSynced: the hub holds it.\n", "The hub holds it."},
		"Means":   {"Some comments say what it means.", "ReasonPaused means: it is paused.", "It is paused."},
		"Several": {"One comment can be about several.", "ReasonA, ReasonB and ReasonC: that is\nthe worst.", "That is\nthe worst."},
		"Of":      {"What else it says stays.", "ReasonReady of the condition Ready: all is well.", "Of the condition Ready: all is well."},
		"Group":   {"A comment of a group names none.", "Reasons of the condition Healthy.", "Reasons of the condition Healthy."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := meaning(tc.comment); got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestComments(t *testing.T) {
	document := "kind: ClusterRole\n# Of the role.\nrules:\n# Of two\n# rules.\n- apiGroups: [a]\n- apiGroups: [b]\n# Of one.\n- apiGroups: [c]\n"
	want := []string{" Of two\n rules.\n", " Of two\n rules.\n", " Of one.\n"}
	if diff := cmp.Diff(want, comments(document)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCell(t *testing.T) {
	if got, want := paragraph(strings.Repeat("word ", 24)+"another "+strings.Repeat("x", 130)), strings.Repeat("word ", 23)+"word\nanother\n"+strings.Repeat("x", 130); got != want {
		t.Errorf("want a paragraph in lines that are no longer than they must be, got %q", got)
	}
	if got, want := cell("a |\n b <c> *"), `a \| b &lt;c> \*`; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestStated(t *testing.T) {
	for name, tc := range map[string]struct{ reason, field, description, want string }{
		"Is":     {"The table has the name.", "url", "url is the address.", "The address."},
		"Are":    {"So it has of a list.", "list", "list are names.", "Names."},
		"Verb":   {"Other verbs stay.", "pause", "pause says what is paused.", "Says what is paused."},
		"Listed": {"So they do before a comma.", "lossy", "lossy lists, by field, what is lost.", "Lists, by field, what is lost."},
		"ID":     {"An abbreviation is written as one.", "id", "id of the subnet.", "ID of the subnet."},
		"Noun":   {"A noun needs its name.", "name", "name of the object.", "Name of the object."},
		"Comma":  {"An example does not.", "kind", "kind, for example Pod.", "For example Pod."},
		"Field":  {"Names of fields are written as they are.", "max", "max is maxClaims of each.", "maxClaims of each."},
		"Other":  {"What does not begin with the name stays.", "name", "names of pools.", "Names of pools."},
		"Absent": {"A field can have no description.", "name", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stated(tc.field, tc.description); got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestFieldsAreExplainedOnce(t *testing.T) {
	text := func(description string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Description: description, MinLength: new(int64(1)), MaxLength: new(int64(63))}
	}
	place := apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": text("name of the place."), "note": text("note is what people say of the place.")}}
	from, to := place, place
	from.Description, to.Description = "from is where it begins.", "to is where it ends."
	var rows table
	rows.said = map[string]string{}
	err := rows.fields("spec", apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"from": from, "note": text("note is what people say of the place."), "to": to}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "| `spec.from` | object | Where it begins. |\n" +
		"| `spec.from.name` \\* | string | Name of the place. 1 to 63 characters. |\n" +
		"| `spec.from.note` | string | What people say of the place. 1 to 63 characters. |\n" +
		"| `spec.note` | string | As `spec.from.note`. |\n" +
		"| `spec.to` | object | Where it ends. Fields: as of `spec.from`. |\n"
	if diff := cmp.Diff(want, rows.rows.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLimits(t *testing.T) {
	enum := []apiextensionsv1.JSON{{Raw: []byte(`"On"`)}, {Raw: []byte(`"Off"`)}}
	for name, tc := range map[string]struct{ reason, description, want string }{
		"Named":   {"A description that names the values is enough.", "mode is On (works) or Off.", ""},
		"Unnamed": {"Otherwise they are listed.", "mode is On (works), Offline or not.", "One of `On`, `Off`."},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := limits(apiextensionsv1.JSONSchemaProps{Enum: enum}, tc.description)
			if err != nil || got != tc.want {
				t.Errorf("%s want %q, got %q, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestBound(t *testing.T) {
	binding := func(name, role string) rbacv1.ClusterRoleBinding {
		b := rbacv1.ClusterRoleBinding{
			RoleRef: rbacv1.RoleRef{Name: role}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "system", Name: "m"}},
		}
		b.Kind, b.Name = "ClusterRoleBinding", name
		return b
	}
	var page strings.Builder
	bound(&page, []rbacv1.ClusterRoleBinding{binding("a", "a"), binding("x", "c"), binding("b", "b")})
	const want = "\nBound to the ServiceAccount `system/m` by a ClusterRoleBinding of the same name: `a`, `b`.\n" +
		"\nBound to the ServiceAccount `system/m` by a ClusterRoleBinding `x`: `c`.\n"
	if diff := cmp.Diff(want, page.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplanations(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nconst (\n// ReasonA and ReasonB: bad.\nReasonA = \"A\"\n"+
		"ReasonB = \"B\"\n// ReasonC: good.\nReasonC = \"C\"\nother = \"D\"\n)\n", parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := explanations(file.Decls[0].(*ast.GenDecl)) //nolint:forcetypeassert // It is.
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rows {
		got = append(got, code(r.reasons)+" "+meaning(r.doc.Text()))
	}
	if diff := cmp.Diff([]string{"`A`, `B` Bad.", "`C` Good."}, got); diff != "" {
		t.Errorf("constants that share a comment are one row: -want +got:\n%s", diff)
	}
}
