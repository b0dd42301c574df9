// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestUnreadManagersAreCut(t *testing.T) {
	// Braces, brackets and quotes in texts end nothing.
	foreign := `{"fieldsV1":{"f:spec":{"v:\"]}":{},".":{}}},"manager":"kubectl","operation":"Apply"}`
	ours := `{"fieldsV1":{"f:spec":{"f:\\":{}}},"manager":"masthead-late-init-a","operation":"Apply"}`
	const object = `{"apiVersion":"v1","kind":"A","metadata":{"generation":-2,"name":"a","managedFields":[%s],"uid":"1"},"spec":{"managedFields":[1,{}]}}`
	for name, tc := range map[string]struct{ reason, object, want string }{
		"Foreign":    {"No controller reads them.", fmt.Sprintf(object, foreign), fmt.Sprintf(object, "")},
		"LateFields": {"The agent reads what it has filled in.", fmt.Sprintf(object, ours), fmt.Sprintf(object, ours)},
		"References": {
			"So does who fills in references.", fmt.Sprintf(object, `{"manager":"masthead-references"}`), fmt.Sprintf(object, `{"manager":"masthead-references"}`),
		},
		"Finalizer": {"No controller reads which manager wrote it.", fmt.Sprintf(object, `{"manager":"masthead"}`), fmt.Sprintf(object, "")},
		"Otherwise": {
			"What may be ours stays.", fmt.Sprintf(object, `{"manager": "a"},{"manager":"\u006dasthead-late-init"},{}`),
			fmt.Sprintf(object, `{"manager": "a"},{"manager":"\u006dasthead-late-init"},{}`),
		},
		"Between": {
			"The order stays.", fmt.Sprintf(object, strings.Join([]string{foreign, ours, foreign, ours, ours, foreign}, ",")),
			fmt.Sprintf(object, strings.Join([]string{ours, ours, ours}, ",")),
		},
		"First":      {"So does what is there already.", fmt.Sprintf(object, ours+","+foreign), fmt.Sprintf(object, ours)},
		"Empty":      {"There is nothing to cut.", fmt.Sprintf(object, ""), ""},
		"None":       {"There is nothing to cut.", `{"kind":"A","metadata":{"name":"a"}}`, ""},
		"NoMetadata": {"It is no object.", `{"kind":"A"}`, ""},
		"Elsewhere":  {"What is not metadata is the user's.", `{"spec":{"metadata":{"managedFields":[{"manager":"kubectl"}]}}}`, ""},
		"Null":       {"It is no list.", `{"metadata":{"managedFields":null}}`, ""},
		"Text":       {"It is no list.", `{"metadata":{"managedFields":"[]"}}`, ""},
		"Spaces":     {"API servers write none.", `{"metadata": {"managedFields": [{"manager":"kubectl"}]}}`, ""},
		"SpaceAfter": {"The reader of JSON says what is wrong.", fmt.Sprintf(object, ours+" ,"+foreign), ""},
		"Unfinished": {"The reader of JSON says so.", `{"metadata":{"managedFields":[{"manager":"kubectl"`, ""},
		"Closed":     {"The reader of JSON says so.", `{"metadata":{"managedFields":[{"manager":"kubectl"}}`, ""},
		"NoObject":   {"The reader of JSON says so.", `[{"metadata":{}}]`, ""},
		"NoText":     {"The reader of JSON says so.", ``, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = tc.object
			}
			// Nothing behind the object may be written to.
			text := append([]byte(tc.object), '}')
			if got := string(withoutUnreadManagers(text[:len(tc.object)])); got != tc.want {
				t.Errorf("%s\nwant %s\ngot  %s", tc.reason, tc.want, got)
			}
			if text[len(tc.object)] != '}' {
				t.Error("What follows the object was changed.")
			}
		})
	}
}

// FuzzUnreadManagers cuts texts that may be invalid: cutting must end, and the text must not grow.
func FuzzUnreadManagers(f *testing.F) {
	f.Add([]byte(claim))
	for _, data := range events() {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := bytes.Clone(data)
		got := withoutUnreadManagers(data)
		if len(got) > len(before) {
			t.Fatalf("%q became %q", before, got)
		}
		if again := withoutUnreadManagers(bytes.Clone(got)); !bytes.Equal(again, got) {
			t.Fatalf("%q was cut to %q and that to %q", before, got, again)
		}
	})
}
