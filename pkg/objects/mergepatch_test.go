// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/json"
)

func TestMergePatch(t *testing.T) {
	for name, tc := range map[string]struct{ reason, from, to, want string }{
		"Equal":          {reason: "Nothing is written when nothing changed.", from: `{"a":{"b":[1]}}`, to: `{"a":{"b":[1]}}`, want: `{}`},
		"Added":          {reason: "What is new is written.", from: `{}`, to: `{"a":1}`, want: `{"a":1}`},
		"Removed":        {reason: "What goes is null.", from: `{"a":1,"b":2}`, to: `{"b":2}`, want: `{"a":null}`},
		"Inner":          {reason: "Of an object, only what changes is written.", from: `{"a":{"b":1,"c":2}}`, to: `{"a":{"b":1,"c":3}}`, want: `{"a":{"c":3}}`},
		"List":           {reason: "A list is written whole.", from: `{"a":[1,2]}`, to: `{"a":[1,3]}`, want: `{"a":[1,3]}`},
		"Object to word": {reason: "What is no object any more is replaced.", from: `{"a":{"b":1}}`, to: `{"a":"b"}`, want: `{"a":"b"}`},
		"Word to object": {reason: "What becomes an object is written whole.", from: `{"a":"b"}`, to: `{"a":{"b":1}}`, want: `{"a":{"b":1}}`},
		"Emptied":        {reason: "An object that stays empty stays.", from: `{"a":{"b":1}}`, to: `{"a":{}}`, want: `{"a":{"b":null}}`},
		"From nothing":   {reason: "An object without a status gets one.", from: `null`, to: `{"a":{}}`, want: `{"a":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := text(t, MergePatch(object(t, tc.from), object(t, tc.to)))
			if got != tc.want {
				t.Errorf("%s\nWant %s, got %s.", tc.reason, tc.want, got)
			}
		})
	}
}

func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		tb.Fatal(err)
	}
	return o
}

func text(tb testing.TB, value any) string {
	tb.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

// FuzzMergePatch applies the patch between two objects to the first, as an API server does.
func FuzzMergePatch(f *testing.F) {
	f.Add(`{"a":{"b":1,"c":[{}]},"d":""}`, `{"a":{"b":"1","e":{}},"f":[1,null]}`)
	f.Add(`{"a":1}`, `{"a":{}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		var from, to map[string]any
		if json.Unmarshal([]byte(first), &from) != nil || json.Unmarshal([]byte(second), &to) != nil || holdsNull(from) || holdsNull(to) || from == nil || to == nil {
			return
		}
		got, err := jsonpatch.MergePatch([]byte(text(t, from)), []byte(text(t, MergePatch(from, to))))
		if err != nil {
			t.Fatal(err)
		}
		if text(t, object(t, string(got))) != text(t, to) {
			t.Errorf("From %s, want %s, got %s.", text(t, from), text(t, to), got)
		}
	})
}

func holdsNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if holdsNull(inner) {
				return true
			}
		}
	}
	return false
}
