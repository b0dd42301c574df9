// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const reasonsPreface = `# Reasons

` + generated + `
Every reason that a condition or an event of Masthead has, with what it means. What to do is on the page that each
chapter names. [` + "`kubectl masthead why`" + `](../cli.md#why) looks for the deepest of them.
`

// chapter has the reasons of one file.
type chapter struct {
	file, title string
	pages       []string
}

// advice returns links to the pages that say what to do.
func (c chapter) advice() string {
	if len(c.pages) == 1 {
		return "[What to do](../" + c.pages[0] + ")"
	}
	links := make([]string, len(c.pages))
	for i, page := range c.pages {
		name, _, _ := strings.Cut(page, ".md")
		links[i] = "[" + name + "](../" + page + ")"
	}
	return "What to do: " + strings.Join(links, ",\n")
}

// chapters are in the order of the page.
func chapters() []chapter {
	return []chapter{
		{"apis/fleet/v1alpha1/connection_reasons.go", "Connections", []string{"enrolment.md#reasons"}},
		{"apis/fleet/v1alpha1/clusterprofile_conditions.go", "ClusterProfiles", []string{"enrolment.md#the-clusterprofile"}},
		{"apis/fleet/v1alpha1/conditions.go", "EnrollmentClasses and HealthRules", []string{"enrolment.md#the-enrollmentclass"}},
		{"apis/fleet/v1alpha1/claim_conditions.go", "Claims", []string{"claims.md#the-condition-agentsynced"}},
		{"apis/common/v1alpha1/conditions.go", "References", []string{"references.md#the-condition-referencesresolved"}},
		{"apis/fleet/v1alpha1/definition_reasons.go", "Definitions in workload clusters", []string{"claims.md#definitions", "discovery.md#reasons", "application.md#the-definition-in-the-cluster"}},
		{"apis/fleet/v1alpha1/discovery_reasons.go", "Discovery", []string{"discovery.md#reasons"}},
		{"apis/apps/v1alpha1/conditions.go", "Applications", []string{"application.md#status"}},
		{"apis/apps/v1alpha1/health_reasons.go", "Health of components", []string{"health.md#how-it-is-decided"}},
		{"apis/fleet/v1alpha1/applicationreport_types.go", "ApplicationReports", []string{"application.md#in-the-hub-applicationreports"}},
		{"apis/fleet/v1alpha1/clusterimport_constants.go", "ClusterImports", []string{"importer.md#status"}},
	}
}

// apart is the file whose reasons users do not see: they see BadKubeconfig and a message.
const apart = "pkg/providers/credentials/reasons.go"

// reasons returns the page of all reasons.
func reasons(root string) (string, error) {
	tables := map[string]string{}
	for _, folder := range []string{"apis", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := reasonsOf(path)
			if name, _ := filepath.Rel(root, path); err == nil && text != "" && name != apart {
				tables[filepath.ToSlash(name)] = text
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	var page strings.Builder
	fmt.Fprintf(&page, reasonsPreface, "the constants in the code")
	for _, c := range chapters() {
		if tables[c.file] == "" {
			return "", fmt.Errorf("%s has no reasons", c.file)
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s\n%s", c.title, c.advice(), tables[c.file])
		delete(tables, c.file)
	}
	for file := range tables {
		return "", fmt.Errorf("no chapter is for the reasons in %s", file)
	}
	return page.String(), nil
}

// explained are reasons that share a comment, and what it says.
type explained struct {
	reasons []string
	doc     *ast.CommentGroup
}

// reasonsOf returns a table for each group of constants in a file that has reasons, and a sentence for one alone.
func reasonsOf(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		rows, err := explanations(group)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if len(rows) == 0 {
			continue
		}
		if !group.Lparen.IsValid() {
			fmt.Fprintf(&text, "\n%s\n", paragraph(code(rows[0].reasons)+": "+cell(meaning(rows[0].doc.Text()))))
			continue
		}
		text.WriteString("\n")
		if group.Doc != nil {
			text.WriteString(paragraph(cell(group.Doc.Text())) + "\n\n")
		}
		text.WriteString("| Reason | Meaning |\n|---|---|\n")
		for _, r := range rows {
			fmt.Fprintf(&text, "| %s | %s |\n", code(r.reasons), cell(meaning(r.doc.Text())))
		}
	}
	return text.String(), nil
}

// explanations returns the reasons of a group of constants.
func explanations(group *ast.GenDecl) ([]explained, error) {
	var rows []explained
	before := group.Doc
	for _, spec := range group.Specs {
		value := spec.(*ast.ValueSpec) //nolint:forcetypeassert // Of constants, it is.
		if value.Doc != nil {
			before = value.Doc // Also the comment of constants below it that have none.
		}
		name := value.Names[0].Name
		if !strings.HasPrefix(name, "Reason") || len(value.Values) != 1 {
			continue
		}
		literal, ok := value.Values[0].(*ast.BasicLit)
		if !ok {
			continue
		}
		reason, err := strconv.Unquote(literal.Value)
		if err != nil {
			return nil, err
		}
		if before == nil {
			return nil, fmt.Errorf("the reason %s has no comment", name)
		}
		if last := len(rows) - 1; last >= 0 && rows[last].doc == before {
			rows[last].reasons = append(rows[last].reasons, reason)
			continue
		}
		rows = append(rows, explained{reasons: []string{reason}, doc: before})
	}
	return rows, nil
}

// named matches the names of constants at the beginning of a comment.
var named = regexp.MustCompile(`^Reason[A-Z]\w*((, | and )Reason[A-Z]\w*)*( means)?:?\s+`)

// meaning returns a comment without the names of constants, as a sentence.
func meaning(comment string) string {
	text := strings.TrimSpace(named.ReplaceAllString(comment, ""))
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
