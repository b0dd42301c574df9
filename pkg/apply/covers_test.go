// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "testing"

func TestCovers(t *testing.T) {
	one, empty := map[string]any{"a": "b"}, map[string]any{"a": map[string]any{}}
	for name, tc := range map[string]struct {
		reason     string
		have, want any
		covers     bool
	}{
		"Missing":        {"A field is missing.", map[string]any{}, one, false},
		"NoObject":       {"All are.", nil, one, false},
		"More":           {"What others add is no difference.", map[string]any{"a": "b", "c": "d"}, one, true},
		"Other":          {"It has another value.", map[string]any{"a": "c"}, one, false},
		"OtherType":      {"It is of another type.", "a", one, false},
		"FalseIsSaid":    {"False is not the same as nothing.", map[string]any{}, map[string]any{"a": false}, false},
		"Null":           {"API servers drop null.", map[string]any{}, map[string]any{"a": nil}, true},
		"Number":         {"A number is the same in both forms.", 1.0, int64(1), true},
		"LongerList":     {"A list has no elements of others.", []any{"a", "b"}, []any{"a"}, false},
		"Elements":       {"Elements have fields of others.", []any{map[string]any{"a": "b", "c": "d"}}, []any{one}, true},
		"NullForEmpty":   {"An apply can leave null.", map[string]any{"a": nil}, empty, false},
		"NothingForNone": {"Typed clients drop empty fields.", map[string]any{}, empty, true},
		"OthersInEmpty":  {"Another manager has put something there.", map[string]any{"a": one}, empty, true},
		"NoList":         {"The same holds for lists.", map[string]any{}, map[string]any{"a": []any{}}, true},
		"NullForList":    {"The same holds for lists.", map[string]any{"a": nil}, map[string]any{"a": []any{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Covers(tc.have, tc.want); got != tc.covers {
				t.Errorf("%s Covers(%v, %v): want %v, got %v", tc.reason, tc.have, tc.want, tc.covers, got)
			}
		})
	}
}

func TestDifference(t *testing.T) {
	want := map[string]any{"b": map[string]any{"c": []any{"x", map[string]any{"d": "e"}}}, "f": "g", "h": "i"}
	have := map[string]any{"b": map[string]any{"c": []any{"x", map[string]any{"d": "z"}}}, "f": "z"}
	for range 20 { // Maps have no order.
		if got, differs := Difference(have, want); got != ".b.c[1].d" || !differs {
			t.Fatalf("want the first field, got %q", got)
		}
	}
	if got, differs := Difference(want, want); got != "" || differs {
		t.Errorf("want no difference, got %q", got)
	}
}
