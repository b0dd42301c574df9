// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestAnythingAnywhere puts values of every type in the place of every value of every fixture. It calls the assessor
// without the recovery from panics, which is for unforeseen cases.
func TestAnythingAnywhere(t *testing.T) {
	a, isAssessor := New().(*assessor)
	if !isAssessor {
		t.Fatal("New returns something else")
	}
	tried := 0
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			for path, variant := range variants(f.object.Object) {
				tried++
				before := fmt.Sprint(variant)
				obj := &unstructured.Unstructured{Object: variant}
				got := valid(a.assess(obj, f.statusExpected()))
				checkValid(t, got)
				if after := fmt.Sprint(variant); before != after {
					t.Errorf("%s: the object was changed: %s, then %s", path, before, after)
				}
				if t.Failed() {
					t.Fatalf("%s: %s", path, before)
				}
			}
		})
	}
	if tried < 10_000 {
		t.Errorf("only %d objects were tried", tried)
	}
}

// variants are copies of an object, each with one value replaced or left out, by what was done.
func variants(object map[string]any) map[string]map[string]any {
	out := map[string]map[string]any{}
	each(object, "", func(path string, replaced any) {
		if o, ok := replaced.(map[string]any); ok {
			out[path] = o
		}
	})
	return out
}

// each calls fn with every variant of a value.
func each(value any, path string, fn func(path string, replaced any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			put := func(path string, replaced any) {
				c := maps.Clone(v)
				c[name] = replaced
				fn(path, c)
			}
			at := path + "." + name
			for i, odd := range oddities() {
				put(fmt.Sprintf("%s = odd value %d", at, i), odd)
			}
			without := maps.Clone(v)
			delete(without, name)
			fn("without "+at, without)
			each(v[name], at, put)
		}
	case []any:
		for i := range v {
			put := func(path string, replaced any) {
				c := slices.Clone(v)
				c[i] = replaced
				fn(path, c)
			}
			at := fmt.Sprintf("%s[%d]", path, i)
			for n, odd := range oddities() {
				put(fmt.Sprintf("%s = odd value %d", at, n), odd)
			}
			each(v[i], at, put)
		}
	}
}

func oddities() []any {
	return []any{
		nil, "", "\x00\u202e\n", true, int64(-1), 1.5, []any{}, []any{nil, "x", int64(1), []any{}, map[string]any{}}, map[string]any{},
		map[string]any{"type": int64(1), "status": true, "conditions": "x", "phase": []any{}},
	}
}
