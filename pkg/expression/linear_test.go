// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
)

// TestExhaustMemoryByExpression: an expression that would take the memory or the time of the manager is not even
// compiled into a program.
func TestExhaustMemoryByExpression(t *testing.T) {
	long := strings.Repeat("x", 1000)
	cases := map[string]struct {
		reason     string
		expression string
		want       string
	}{
		"Replace":        {reason: "Each one multiplies the text by a thousand.", expression: "'" + long + "'.replace('', '" + long + "').replace('', '" + long + "')", want: "the function replace is not available"},
		"Quote":          {reason: "Each one doubles it.", expression: "strings.quote(strings.quote('\"'))", want: "the function strings.quote is not available"},
		"Range":          {reason: "A number makes a list.", expression: "lists.range(10000000)", want: "the function lists.range is not available"},
		"Map":            {reason: "Each one doubles what all() or format walks through.", expression: "[1].map(a, [a, a]).map(b, [b, b])", want: "map can take only the element"},
		"MapIf":          {reason: "So do those with a condition.", expression: "[1].map(a, true, [a, a])", want: "map can take only the element"},
		"MapText":        {reason: "Each one doubles it.", expression: "['a'].map(a, a + a)", want: "map can take only the element"},
		"MapOuter":       {reason: "It is there once for each element.", expression: "variables.a.split('').map(a, variables.a)", want: "map can take only the element"},
		"MapFormat":      {reason: "What a format makes is larger than what it is called with.", expression: "['a'].map(a, '%b'.format([a]))", want: "map can take only the element"},
		"MapKey":         {reason: "The key may be of any size.", expression: "[{'a': 1}].map(a, a[variables.a])", want: "map can take only the element"},
		"Nested":         {reason: "Each one multiplies the steps.", expression: "[1].filter(a, [1].exists(b, a == b))", want: "loops cannot be nested"},
		"Type":           {reason: "Each one doubles the type, in the compiler.", expression: "[1].map(a, {a: a}).map(b, {b: b})", want: "map can take only the element"},
		"ExistsOne":      {reason: "A loop.", expression: "[1].exists_one(v, v == v)", want: "undeclared reference to 'exists_one'"},
		"Optional":       {reason: "Each one doubles it.", expression: "optional.of(1).optMap(a, [a, a]).optMap(b, [b, b])", want: "undeclared reference to 'optMap'"},
		"TransformList":  {reason: "A loop.", expression: "[1].transformList(i, v, [v, v])", want: "undeclared reference to 'transformList'"},
		"SortBy":         {reason: "A loop.", expression: "[1].sortBy(v, v)", want: "undeclared reference to 'sortBy'"},
		"Join":           {reason: "The separator stands between any two characters.", expression: "variables.a.split('').join('" + long + "')", want: "the separator of join"},
		"JoinVariable":   {reason: "The separator stands between any two characters.", expression: "variables.a.split('').join(variables.a)", want: "the separator of join"},
		"Precision":      {reason: "A million digits.", expression: "'%.1000000f'.format([1.0])", want: "a precision in it must have at most two digits"},
		"FormatVariable": {reason: "A million digits.", expression: "variables.a.format([1.0])", want: "must be a string literal"},
		"FormatOfFormat": {reason: "What a format makes is larger than what it is called with.", expression: "'%s'.format([['%s'.format([['\"']])]])", want: "calls of format cannot be nested"},
		"Regexp":         {reason: "Its states times the length of the text.", expression: "variables.a.matches('x{1000}x{1000}')", want: "the function matches is not available"},
		"Long":           {reason: "The size of values is linear in the text, so the text is bounded.", expression: "'" + strings.Repeat("x", MaxLinearLength) + "'", want: "it is longer than"},
	}
	env := testEnvironment(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			program, err := CompileLinear(env, tc.expression)
			if err == nil || program.Program != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestCompileLinear: everything that references need is available.
func TestCompileLinear(t *testing.T) {
	cases := map[string]struct {
		reason     string
		expression string
		want       any
		wantUses   int
	}{
		"Format":   {reason: "ARNs are made with it.", expression: "'arn:%s:%.2f'.format([variables.a, 1.5])", want: "arn:a-b:1.50", wantUses: 1},
		"Concat":   {reason: "The shortest way.", expression: "variables.a + '/' + variables.a", want: "a-b/a-b", wantUses: 2},
		"Join":     {reason: "With a separator that is written out.", expression: "variables.a.split('-').join(', ')", want: "a, b", wantUses: 1},
		"Ternary":  {reason: "Variables that may be missing.", expression: "has(variables.b) ? 'b' : variables.a.upperAscii()", want: "A-B", wantUses: 2},
		"Optional": {reason: "Variables that may be missing.", expression: "variables[?'b'].orValue('none')", want: "none", wantUses: 1},
		"URL":      {reason: "The host of an endpoint.", expression: "url('https://example.org:6443/x').getHostname()", want: "example.org"},
		"Filter":   {reason: "Elements of others are left out.", expression: "variables.a.split('-').filter(x, x != 'a').join('')", want: "b", wantUses: 3},
		"MapField": {reason: "A list of fields, of some elements.", expression: "[{'t': 'x', 'v': '1'}, {'t': 'y', 'v': '2'}].map(c, c.t == 'x', c.v).join('')", want: "1", wantUses: 2},
		"Row":      {reason: "What loops make is no larger than before.", expression: "[{'a': {'b': '1'}}].map(x, x.a).map(y, y['b']).join('')", want: "1", wantUses: 2},
		"Exists":   {reason: "The condition of many objects.", expression: "[{'type': 'Ready', 'status': 'True'}].exists(c, c.type == 'Ready' && c.status == 'True')", want: true, wantUses: 2},
		"All":      {reason: "Each one is.", expression: "variables.a.split('-').all(x, x != '')", want: true, wantUses: 2},
		"CIDR":     {reason: "Part of a network.", expression: "cidr('10.1.2.0/24').masked() == cidr('10.1.2.0/24')", want: true},
	}
	env := testEnvironment(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			program, err := CompileLinear(env, tc.expression)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got, err := Evaluate(program.Program, map[string]any{"variables": map[string]any{"a": "a-b"}})
			if err != nil || got.Value() != tc.want || program.Uses != tc.wantUses {
				t.Errorf("%s: want %v and %d uses, got %v and %d: %v", tc.reason, tc.want, tc.wantUses, got, program.Uses, err)
			}
		})
	}
}

// TestLinearFunctions: each name is that of an existing function.
func TestLinearFunctions(t *testing.T) {
	functions := testEnvironment(t).Functions()
	for name := range strings.FieldsSeq(LinearFunctions + " " + linearOperators) {
		if functions[name] == nil && name != "_?_:_" {
			t.Errorf("there is no function %q", name)
		}
	}
}

func testEnvironment(t *testing.T) *cel.Env {
	t.Helper()
	env, err := NewEnvironment(cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)))
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestKeepManagerBusyByLoop: a loop goes through the conditions of an object, but not through thousands of elements.
func TestKeepManagerBusyByLoop(t *testing.T) {
	program, err := CompileLinear(testEnvironment(t), "variables.l.filter(c, c.type == 'Ready').map(c, c.status)")
	if err != nil {
		t.Fatal(err)
	}
	for elements, want := range map[int]error{50: nil, 1000: ErrTooExpensive} {
		list := slices.Repeat([]any{map[string]any{"type": "Other", "status": "True"}}, elements)
		_, err := Evaluate(program.Program, map[string]any{"variables": map[string]any{"l": list}})
		if !errors.Is(err, want) {
			t.Errorf("%d elements: want %v, got %v", elements, want, err)
		}
	}
}

// BenchmarkLinearLoop measures the highest cost, for one expression, of an author who wants to keep the manager busy.
func BenchmarkLinearLoop(b *testing.B) {
	list := make([]any, 4000)
	for i := range list {
		list[i] = "same"
	}
	for name, source := range map[string]string{
		"short": "variables.l.filter(x, x == '')",
		"long":  "variables.l.filter(x, " + strings.Repeat("x==x&&", 600) + "true)",
		"row":   strings.Repeat("variables.l.filter(x,x=='').size()+", 100) + "1",
	} {
		env, err := NewEnvironment(cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)))
		if err != nil {
			b.Fatal(err)
		}
		program, err := CompileLinear(env, source)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = Evaluate(program.Program, map[string]any{"variables": map[string]any{"l": list}})
			}
		})
	}
}
