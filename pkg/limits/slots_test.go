// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"slices"
	"testing"
)

// TestSlots_Release: a key that gives up its turn, waiting or woken, leaves nothing behind, and can come again.
func TestSlots_Release(t *testing.T) {
	t.Parallel()
	var woken []string
	s := NewSlots(1, 1, func(key string) { woken = append(woken, key) })
	leave, ok := s.Acquire("first", "a")
	if !ok {
		t.Fatal("want a place for the first")
	}
	for _, key := range []string{"waits", "next"} {
		if _, ok := s.Acquire(key, "b"); ok {
			t.Fatalf("want no place for %q", key)
		}
	}
	s.Release("waits")
	leave()
	if !slices.Equal(woken, []string{"next"}) {
		t.Fatalf("want the one woken that still waits, got %v", woken)
	}
	s.Release("next")
	if len(s.turns) != 0 {
		t.Errorf("want no turn left, got %v", s.turns)
	}
	for _, key := range []string{"waits", "next"} {
		leave, ok := s.Acquire(key, "b")
		if !ok {
			t.Fatalf("want a place for %q again", key)
		}
		leave()
	}
	if free, waiting, _ := s.Shared.Usage(); free != 1 || waiting != 0 {
		t.Errorf("want the place free, got %d free, %d waiting", free, waiting)
	}
}
