// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func object(name, uid, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetName(name)
	u.SetNamespace("default")
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	return u
}

func TestStoreReplace(t *testing.T) {
	type object3 = [3]string
	for name, tc := range map[string]struct {
		reason      string
		old, listed []object3
		want        []string
	}{
		"First": {
			reason: "What the first list brings is new.",
			listed: []object3{{"a", "1", "5"}},
			want:   []string{"Added a/1 initial=true relisted=false"},
		},
		"Same": {
			reason: "What has not changed is not reported.",
			old:    []object3{{"a", "1", "5"}}, listed: []object3{{"a", "1", "5"}},
		},
		"Changed": {
			reason: "Another version of the same object is an update.",
			old:    []object3{{"a", "1", "5"}}, listed: []object3{{"a", "1", "6"}},
			want: []string{"Updated a/1 initial=false relisted=false"},
		},
		"Gone": {
			reason: "What is missing is deleted, and it is said that only the result was seen.",
			old:    []object3{{"a", "1", "5"}},
			want:   []string{"Deleted a/1 initial=false relisted=true"},
		},
		"Replaced": {
			reason: "Another object of the same name is not an update of the first.",
			old:    []object3{{"a", "1", "5"}}, listed: []object3{{"a", "2", "7"}},
			want: []string{"Added a/2 initial=false relisted=false", "Deleted a/1 initial=false relisted=true"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			synced := 0
			s := newStore(configMaps, func(e Event) {
				got = append(got, fmt.Sprintf("%s %s/%s initial=%v relisted=%v", e.Type, e.Object.GetName(), e.Object.GetUID(), e.Initial, e.Relisted))
			}, func() { synced++ })
			list := func(in []object3) []runtime.Object {
				out := []runtime.Object{}
				for _, o := range in {
					out = append(out, object(o[0], o[1], o[2]))
				}
				return out
			}
			if tc.old != nil {
				if err := s.replace(s.itemsFor(list(tc.old)...), "9"); err != nil {
					t.Fatal(err)
				}
			}
			got, synced = nil, 0
			if err := s.replace(s.itemsFor(list(tc.listed)...), "10"); err != nil {
				t.Fatal(err)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if synced != 1 {
				t.Errorf("want the end of the list to be reported once, got %d", synced)
			}
		})
	}
}

func TestStoreObserve(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe *unstructured.Unstructured
		then    func(s *store)
		want    string
	}{
		"Newer": {
			reason:  "What was written after the last event is what is there.",
			observe: object("a", "1", "12"), want: "1/12",
		},
		"Old": {
			reason:  "An answer that arrives after its event changes nothing.",
			observe: object("a", "1", "7"), want: "1/8",
		},
		"Gone": {
			reason:  "An answer about an object that is gone by now does not bring it back.",
			observe: object("a", "1", "9"), then: nil, want: "1/8",
		},
		"CaughtUp": {
			reason:  "The watch is believed as soon as it has come that far.",
			observe: object("a", "1", "12"), then: func(s *store) { s.update(object("a", "1", "13")) }, want: "1/13",
		},
		"StillBehind": {
			reason:  "An event from before the write does not hide the write.",
			observe: object("a", "1", "12"), then: func(s *store) { s.update(object("a", "1", "11")) }, want: "1/12",
		},
		"DeletedAndRecreated": {
			reason:  "Another object of the same name replaces what was observed.",
			observe: object("a", "1", "12"), then: func(s *store) { s.update(object("a", "2", "14")) }, want: "2/14",
		},
		"Deleted": {
			reason:  "The end of the object is the end of what was observed.",
			observe: object("a", "1", "12"), then: func(s *store) { s.delete(object("a", "1", "14")) }, want: "",
		},
		"Passed": {
			reason:  "A watch that has come further without a word of the object means that there is none.",
			observe: object("b", "3", "12"), then: func(s *store) { s.advanceTo("20") }, want: "1/8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(configMaps, func(Event) {}, func() {})
			if err := s.replace(s.itemsFor(object("a", "1", "8")), "10"); err != nil {
				t.Fatal(err)
			}
			s.observe(tc.observe)
			if tc.then != nil {
				tc.then(s)
			}
			var got []string
			objs, _ := s.list()
			for _, o := range objs {
				got = append(got, string(o.UID)+"/"+o.ResourceVersion)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
