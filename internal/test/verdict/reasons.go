// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// Reasons returns the values of the exported constants Reason… in a folder of the repository, by name. With words, it
// returns only constants whose own comment or whose group's comment contains one of the words.
func Reasons(t *testing.T, folder string, words ...string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(testenv.Root(), folder))
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(testenv.Root(), folder, e.Name()), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if group, ok := d.(*ast.GenDecl); ok && group.Tok == token.CONST {
				constantReasons(group, words, reasons)
			}
		}
	}
	if len(reasons) == 0 {
		t.Fatalf("found no reasons in %s for %v", folder, words)
	}
	return reasons
}

func constantReasons(group *ast.GenDecl, words []string, into map[string]string) {
	for _, s := range group.Specs {
		spec, ok := s.(*ast.ValueSpec)
		comment := group.Doc.Text() + spec.Doc.Text()
		wanted := len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(comment, w) })
		if !ok || !wanted {
			continue
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, "Reason") || i >= len(spec.Values) {
				continue
			}
			// A constant that stands for another package's constant is looked for in that package.
			if literal, ok := spec.Values[i].(*ast.BasicLit); ok {
				if value, err := strconv.Unquote(literal.Value); err == nil {
					into[name.Name] = value
				}
			}
		}
	}
}

// Covers checks that each reason occurs in the status of one of the objects, except for those in except, which has, by
// the name of the constant, why no status can have the reason.
func Covers(t *testing.T, reasons, except map[string]string, objects ...*unstructured.Unstructured) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range objects {
		collectReasons(o.Object["status"], seen)
	}
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		why, excepted := except[name]
		switch {
		case !excepted && !seen[reasons[name]]:
			t.Errorf("%s (%q) occurs in no row of the table: add the state in which a status bears it, and what a person would say of it",
				name, reasons[name])
		case excepted && why == "":
			t.Errorf("%s is excepted without saying why", name)
		}
	}
	for name := range except {
		if _, known := reasons[name]; !known {
			t.Errorf("%s is excepted and does not exist", name)
		}
	}
}

// collectReasons collects every field "reason" of a status, at any depth.
func collectReasons(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if reason, ok := v["reason"].(string); ok {
			into[reason] = true
		}
		for _, e := range v {
			collectReasons(e, into)
		}
	case []any:
		for _, e := range v {
			collectReasons(e, into)
		}
	}
}
