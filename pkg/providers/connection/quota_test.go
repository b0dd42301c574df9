// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// fakeQuota is a quota whose woken members ask again at once, as reconciles do.
type fakeQuota struct {
	*quota
	limit map[string]int
	class map[string]string // the last class that each one named
	has   map[string]bool
	ages  map[string]int
}

func newFakeQuota(ages map[string]int) *fakeQuota {
	f := &fakeQuota{limit: map[string]int{}, class: map[string]string{}, has: map[string]bool{}, ages: ages}
	f.quota = newQuota(func(k Key) {
		if class, ok := f.class[k.Name]; ok {
			f.ask(k.Name, class)
		}
	})
	return f
}

func quotaKey(name string) Key { return Key{"fake", "ns", name} }

func (f *fakeQuota) ask(name, class string) {
	f.class[name] = class
	f.has[name] = f.admit(quotaKey(name), class, time.Unix(1000-int64(f.ages[name]), 0), f.limit[class])
}

func (f *fakeQuota) gone(name string) {
	delete(f.class, name)
	delete(f.has, name)
	f.leave(quotaKey(name))
}

// change sets a limit, and notifies every member as the watch of classes does.
func (f *fakeQuota) change(class string, limit int) {
	f.limit[class] = limit
	for name, c := range f.class {
		if c == class {
			f.ask(name, class)
		}
	}
}

func (f *fakeQuota) holders() string {
	var names []string
	for name, has := range f.has {
		if has {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return fmt.Sprint(names)
}

func TestQuota(t *testing.T) {
	ages := map[string]int{"a": 50, "b": 40, "c": 30, "d": 20, "e": 10}
	cases := map[string]struct {
		reason string
		do     func(f *fakeQuota)
		want   string
	}{
		"NoLimit":   {"A class without a limit holds any number.", func(f *fakeQuota) { f.change("x", 0) }, "[b c d]"},
		"Full":      {"Who comes late has no place, however old its object is.", func(f *fakeQuota) { f.change("x", 3); f.ask("a", "x") }, "[b c d]"},
		"Lowered":   {"The youngest lose their places.", func(f *fakeQuota) { f.change("x", 1) }, "[b]"},
		"Raised":    {"Those that wait get places at once, the older first.", func(f *fakeQuota) { f.change("x", 3); f.ask("e", "x"); f.ask("a", "x"); f.change("x", 4) }, "[a b c d]"},
		"Freed":     {"A place that becomes free goes to the one that has waited as the oldest.", func(f *fakeQuota) { f.change("x", 3); f.ask("e", "x"); f.ask("a", "x"); f.gone("c") }, "[a b d]"},
		"ComesBack": {"Who lost a place is before those that never had one.", func(f *fakeQuota) { f.change("x", 2); f.ask("a", "x"); f.gone("b") }, "[c d]"},
		"Moved": {"Who changes to a full class has no place there, and frees the one that it had.", func(f *fakeQuota) {
			f.change("x", 3)
			f.change("y", 1)
			f.ask("e", "y")
			f.ask("a", "x")
			f.ask("b", "y")
		}, "[a c d e]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFakeQuota(ages)
			for _, name := range []string{"d", "b", "c"} {
				f.ask(name, "x")
			}
			tc.do(f)
			if got := f.holders(); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestQuotaOverARestart has enrolments ask in any order after a start: those that had places before keep them.
func TestQuotaOverARestart(t *testing.T) {
	ages := map[string]int{"a": 50, "b": 40, "c": 30, "d": 20, "gone": 60}
	for seed := range uint64(50) {
		names := []string{"a", "b", "c", "d"}
		random := rand.New(rand.NewPCG(seed, 1))
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		f := newFakeQuota(ages)
		f.limit["x"] = 2
		for _, name := range []string{"c", "d"} {
			f.reserve(quotaKey(name), "x")
		}
		for _, name := range names {
			f.ask(name, "x")
		}
		if got := f.holders(); got != "[c d]" {
			t.Errorf("in the order %v: want the places with c and d, got %s", names, got)
		}
		// An enrolment that is removed meanwhile frees its place.
		f = newFakeQuota(ages)
		f.limit["x"] = 2
		for _, name := range []string{"gone", "d"} {
			f.reserve(quotaKey(name), "x")
		}
		for _, name := range names {
			f.ask(name, "x")
		}
		f.gone("gone")
		if got := f.holders(); got != "[a d]" && got != "[b d]" && got != "[c d]" {
			t.Errorf("in the order %v: want a place with d and one of those that wait, got %s", names, got)
		}
	}
}

// TestNoMemberLosesAPlaceToAnother performs random operations, and verifies that places are lost only by members that
// leave or when the limit is lowered.
func TestNoMemberLosesAPlaceToAnother(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ages := map[string]int{}
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("c%02d", i))
		ages[names[i]] = random.IntN(6)
	}
	f := newFakeQuota(ages)
	f.change("x", 4)
	for step := range 5000 {
		before := maps.Clone(f.has)
		name, lowered := names[random.IntN(len(names))], false
		switch random.IntN(5) {
		case 0:
			f.gone(name)
			delete(before, name)
		case 1:
			limit := 1 + random.IntN(6)
			lowered = limit < f.limit["x"]
			f.change("x", limit)
		default:
			f.ask(name, "x")
		}
		holders := 0
		for _, has := range f.has {
			if has {
				holders++
			}
		}
		if want := min(f.limit["x"], len(f.has)); holders != want {
			t.Fatalf("step %d: want %d holders of %d members, got %d", step, want, len(f.has), holders)
		}
		for name, had := range before {
			if had && !f.has[name] && !lowered {
				t.Fatalf("step %d: %s lost its place", step, name)
			}
		}
	}
}
