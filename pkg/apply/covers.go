// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
)

// Covers reports whether everything wanted is present with the same value. Unmentioned fields may have any value. Lists
// must have the same length and cover each other element by element, which allows for late-initialized fields inside
// elements. A missing field covers a wanted null, since API servers drop nulls, and wanted emptiness, since typed
// clients drop that; null does not cover emptiness.
func Covers(have, want any) bool {
	_, differs := Difference(have, want)
	return !differs
}

// Difference returns the first field, by name, by which a value does not cover what is wanted, and whether there is
// any. Its path is empty if that is the value itself.
func Difference(have, want any) (path string, differs bool) {
	switch w := want.(type) {
	case map[string]any:
		return differenceOfMaps(have, w)
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return "", true
		}
		for i := range w {
			if inner, is := Difference(h[i], w[i]); is {
				return fmt.Sprintf("[%d]%s", i, inner), true
			}
		}
		return "", false
	case int64:
		f, ok := have.(float64)
		return "", have != want && !(ok && f == float64(w))
	case float64:
		i, ok := have.(int64)
		return "", have != want && !(ok && w == float64(i))
	}
	return "", have != want
}

func differenceOfMaps(have any, want map[string]any) (path string, differs bool) {
	h, ok := have.(map[string]any)
	if !ok {
		return "", true
	}
	first := ""
	for k, v := range want {
		member, there := h[k]
		if !there && isEmpty(v) || differs && k > first {
			continue
		}
		if inner, is := Difference(member, v); is {
			path, first, differs = "."+k+inner, k, true
		}
	}
	return path, differs
}

// loses reports whether a map or a list is wanted empty where there is one with more in it.
func loses(want, have any) bool { return isEmpty(want) && !within(have, want) }

// within reports whether a value has nothing but what an empty one has.
func within(have, want any) bool {
	switch h := have.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		for k, v := range h {
			if member, ok := w[k]; !ok || !within(v, member) {
				return false
			}
		}
		return true
	case []any:
		return len(h) == 0
	}
	return have == nil
}

// wantsEmpty reports whether that may be so anywhere in a value. The elements of lists may have changed places.
func wantsEmpty(want, have any) bool {
	if loses(want, have) {
		return true
	}
	switch w := want.(type) {
	case map[string]any:
		h, _ := have.(map[string]any)
		for k, v := range w {
			if wantsEmpty(v, h[k]) {
				return true
			}
		}
	case []any:
		return size(have) > 0 && slices.ContainsFunc(w, holdsEmpty)
	}
	return false
}

// holdsEmpty reports whether a value is without content, or has such a member.
func holdsEmpty(v any) bool {
	if isEmpty(v) {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if holdsEmpty(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsEmpty)
	}
	return false
}

// isEmpty reports whether a value is a map or a list without content: without entries, or with none but such.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !isEmpty(member) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return false
}

// size is the number of entries of a map or a list.
func size(v any) int {
	switch v := v.(type) {
	case map[string]any:
		return len(v)
	case []any:
		return len(v)
	}
	return 0
}

// The types of JSON values.
const (
	null = iota
	object
	list
	text
	boolean
	number
)

func kind(v any) int {
	switch v.(type) {
	case nil:
		return null
	case map[string]any:
		return object
	case []any:
		return list
	case string:
		return text
	case bool:
		return boolean
	}
	return number
}
