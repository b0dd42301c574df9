// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMap(t *testing.T) {
	m := Index[string, int]{}
	m.Delete("a", 1) // Deleting from an empty map does nothing.
	m.Insert("a", 1)
	m.Insert("a", 2)
	m.Insert("a", 2)
	m.Insert("b", 3)
	got := m.Values("a")
	slices.Sort(got)
	if diff := cmp.Diff([]int{1, 2}, got); diff != "" {
		t.Errorf("want each value once (-want +got):\n%s", diff)
	}
	m.Delete("a", 1)
	m.Delete("b", 3)
	if got := m.Values("a"); len(got) != 1 || len(m) != 1 || len(m.Values("b")) != 0 {
		t.Errorf("want what was deleted to be gone, and keys without values too, got %v", m)
	}
	var none Index[string, int]
	if got := none.Values("a"); len(got) != 0 {
		t.Errorf("want the zero value to be empty, got %v", got)
	}
}
