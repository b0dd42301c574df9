// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// While an API server restarts, an object can be written and deleted before the watch is back. Its writer receives the
// deletion: the object's claim, with its finalizer, waited for that.
func TestStoreReportsWhatWentUnseen(t *testing.T) {
	for _, tc := range []struct {
		name, reason string
		known        string
		listed       []runtime.Object
		version      string
		want         []string
		left         bool
	}{
		{name: "gone", reason: "The list is newer, and does not have it.", version: "20", want: []string{"Deleted a/1"}},
		{name: "old list", reason: "A list from before it was written says nothing about it.", version: "9", left: true},
		{
			name: "known before", reason: "It is reported once.", known: "1", version: "20",
			want: []string{"Deleted a/1"},
		},
		{
			name: "another", reason: "Another object took its name.", listed: []runtime.Object{object("a", "2", "19")}, version: "20",
			want: []string{"Deleted a/1", "Added a/2"},
		},
		{
			name: "between", reason: "It came and went between two others.", known: "0", listed: []runtime.Object{object("a", "2", "19")}, version: "20",
			want: []string{"Deleted a/1", "Deleted a/0", "Added a/2"},
		},
		{name: "still there", reason: "It is what was written.", listed: []runtime.Object{object("a", "1", "10")}, version: "20", want: []string{"Added a/1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			s := newStore(configMaps, func(e Event) {
				got = append(got, fmt.Sprintf("%s %s/%s", e.Type, e.Object.GetName(), e.Object.GetUID()))
			}, func() {})
			if err := s.replace(nil, "5"); err != nil {
				t.Fatal(err)
			}
			if tc.known != "" {
				s.update(object("a", tc.known, "8"))
				s.advanceTo("8")
			}
			got = nil
			s.observe(object("a", "1", "10"))
			if err := s.replace(s.itemsFor(tc.listed...), tc.version); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s Want %q, got %q", tc.reason, tc.want, got)
			}
			if left := s.observed.items[objectKey(object("a", "", ""))] != nil; left != tc.left {
				t.Errorf("%s Want it kept: %t, got %t", tc.reason, tc.left, left)
			}
		})
	}
}
