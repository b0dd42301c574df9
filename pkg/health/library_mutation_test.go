// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/healthcases"
)

// TestLibraryNeedsEachTerm removes from the rules of the library each term that makes an object Degraded, Suspended or
// Progressing, one at a time. A fixture of the rule has to notice: a term that no fixture shows can be wrong, or be
// lost, and objects would be Healthy by mistake.
func TestLibraryNeedsEachTerm(t *testing.T) {
	library, err := NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	fixtures, err := healthcases.Fixtures("library/testdata")
	if err != nil {
		t.Fatal(err)
	}
	parser := newParser(t)
	environments := newEnvironments()
	tried := 0
	for _, project := range library.Projects {
		for _, rule := range project.Rules {
			key := healthcases.Key(rule.rule.selectors[0].Group, rule.rule.selectors[0].Kind)
			for field, expression := range map[string]func(*fleetv1alpha1.HealthRuleSpec) *string{
				"degraded":    func(s *fleetv1alpha1.HealthRuleSpec) *string { return &s.Degraded },
				"suspended":   func(s *fleetv1alpha1.HealthRuleSpec) *string { return &s.Suspended },
				"progressing": func(s *fleetv1alpha1.HealthRuleSpec) *string { return &s.Progressing },
			} {
				source := *expression(&rule.HealthRuleSpec)
				if source == "" {
					continue
				}
				for _, m := range mutants(t, parser, source) {
					tried++
					spec := rule.HealthRuleSpec
					*expression(&spec) = m.source
					mutated := &Rule{
						name: project.Name, selectors: rule.rule.selectors, spec: spec, shipped: true,
						compile: sync.OnceValue(func() *program { return compile(spec, environments) }),
					}
					if err := mutated.Err(); err != nil {
						t.Fatalf("%s, %s without %s cannot be compiled: %v", key, field, m.without, err)
					}
					if !noticed(New(mutated), mutated, fixtures[key]) {
						t.Errorf("%s, %s: no fixture shows %s", key, field, m.without)
					}
				}
			}
		}
	}
	if tried < 500 {
		t.Errorf("only %d terms were tried", tried)
	}
}

// noticed reports whether a fixture has another health than expected.
func noticed(a Assessor, rule *Rule, fixtures []healthcases.Fixture) bool {
	return slices.ContainsFunc(fixtures, func(f healthcases.Fixture) bool {
		return slices.ContainsFunc(rule.selectors, func(s Selector) bool {
			return a.Assess(f.Object(healthcases.Example(s.Group, s.Version, s.Kind)), true).Health != f.Want
		})
	})
}

// mutant is an expression without one of its terms.
type mutant struct{ source, without string }

// newParser reads expressions with their macros as they are written.
func newParser(t *testing.T) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.ClearMacros(), cel.OptionalTypes())
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// mutants are the variants of an expression that lack one of its terms: a term that is joined with || is replaced by
// false, and one of several types of conditions in an isUnmet by an empty one.
func mutants(t *testing.T, parser *cel.Env, source string) []mutant {
	t.Helper()
	var all []mutant
	for n := 0; ; n++ {
		parsed, issues := parser.Parse(source)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", source, issues.Err())
		}
		terms := splitTerms(parsed.NativeRep().Expr())
		if n == len(terms) {
			return all
		}
		without, err := cel.ExprToString(terms[n], parsed.NativeRep().SourceInfo())
		if err != nil {
			t.Fatal(err)
		}
		var nothing ref.Val = types.False
		if terms[n].Kind() == ast.LiteralKind && terms[n].AsLiteral().Type() == types.StringType {
			nothing = types.String("")
		}
		terms[n].SetKindCase(ast.NewExprFactory().NewLiteral(terms[n].ID(), nothing))
		text, err := cel.AstToString(parsed)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, mutant{text, without})
	}
}

// splitTerms are the terms of an expression, at any depth.
func splitTerms(root ast.Expr) []ast.Expr {
	var terms []ast.Expr
	if !isOr(root) {
		terms = append(terms, root)
	}
	var walk func(e ast.Expr)
	walk = func(e ast.Expr) {
		switch e.Kind() {
		case ast.CallKind:
			call := e.AsCall()
			if call.IsMemberFunction() {
				walk(call.Target())
			}
			for _, argument := range call.Args() {
				if isOr(e) && !isOr(argument) || call.FunctionName() == "isUnmet" && len(call.Args()) > 1 {
					terms = append(terms, argument)
				}
				walk(argument)
			}
		case ast.ListKind:
			for _, element := range e.AsList().Elements() {
				walk(element)
			}
		case ast.SelectKind:
			walk(e.AsSelect().Operand())
		case ast.UnspecifiedExprKind, ast.ComprehensionKind, ast.IdentKind, ast.LiteralKind, ast.MapKind, ast.StructKind:
		}
	}
	walk(root)
	return terms
}

func isOr(e ast.Expr) bool { return e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "_||_" }

func TestMutants(t *testing.T) {
	parser := newParser(t)
	for source, want := range map[string][]mutant{
		"a":                 {{"false", "a"}},
		"a || b":            {{"false || b", "a"}, {"a || false", "b"}},
		"a && (b || c)":     {{"false", "a && (b || c)"}, {"a && (false || c)", "b"}, {"a && (b || false)", "c"}},
		"isUnmet('a', 'b')": {{"false", `isUnmet("a", "b")`}, {`isUnmet("", "b")`, `"a"`}, {`isUnmet("a", "")`, `"b"`}},
		"x.exists(p, p||q)": {{"false", "x.exists(p, p || q)"}, {"x.exists(p, false || q)", "p"}, {"x.exists(p, p || false)", "q"}},
	} {
		if got := mutants(t, parser, source); !slices.Equal(got, want) {
			t.Errorf("%s: want %q, got %q", source, want, got)
		}
	}
}
