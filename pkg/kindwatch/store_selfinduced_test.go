// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStoreEcho(t *testing.T) {
	for name, tc := range map[string]struct {
		reason          string
		observe, report [3]string
		want            bool
	}{
		"Own":       {reason: "What was written is reported as such.", observe: [3]string{"a", "1", "12"}, report: [3]string{"a", "1", "12"}, want: true},
		"Before":    {reason: "A change before the write is another client's.", observe: [3]string{"a", "1", "12"}, report: [3]string{"a", "1", "11"}},
		"After":     {reason: "So is a change after it.", observe: [3]string{"a", "1", "12"}, report: [3]string{"a", "1", "13"}},
		"Other":     {reason: "Another object of the same name is not the one that was written.", observe: [3]string{"a", "1", "12"}, report: [3]string{"a", "2", "12"}},
		"Elsewhere": {reason: "A write of one object says nothing of another.", observe: [3]string{"a", "1", "12"}, report: [3]string{"b", "3", "12"}},
	} {
		t.Run(name, func(t *testing.T) {
			var echoes []bool
			s := newStore(configMaps, func(e Event) { echoes = append(echoes, e.SelfInduced) }, func() {})
			if err := s.replace(s.itemsFor(object("a", "1", "8")), "9"); err != nil {
				t.Fatal(err)
			}
			s.observe(object(tc.observe[0], tc.observe[1], tc.observe[2]))
			s.update(object(tc.report[0], tc.report[1], tc.report[2]))
			if got := echoes[len(echoes)-1]; got != tc.want {
				t.Errorf("%s got echo=%v", tc.reason, got)
			}
		})
	}
}

func TestStoreEchoOnce(t *testing.T) {
	var echoes []bool
	s := newStore(configMaps, func(e Event) { echoes = append(echoes, e.SelfInduced) }, func() {})
	if err := s.replace(s.itemsFor(object("a", "1", "8")), "9"); err != nil {
		t.Fatal(err)
	}
	s.observe(object("a", "1", "12"))
	for _, version := range []string{"12", "13"} {
		s.update(object("a", "1", version))
	}
	if diff := cmp.Diff([]bool{false, true, false}, echoes); diff != "" {
		t.Errorf("A list is no echo, and what follows an echo is none.\n-want, +got:\n%s", diff)
	}
}

func BenchmarkStore(b *testing.B) {
	s := newStore(configMaps, func(Event) {}, func() {})
	s.budget = allowance{perKind: Unlimited, total: Unlimited, all: &usage{}}
	if err := s.replace(nil, "0"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		obj := object("a"+strconv.Itoa(i%5000), "1", strconv.Itoa(i))
		s.observe(obj)
		s.update(obj)
		s.advanceTo(strconv.Itoa(i))
		if _, ok := s.get(objectKey(obj)); !ok {
			b.Fatal("the store is not synced")
		}
	}
}
