// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"strings"
	"testing"
)

// TestWhatIsObservedIsCharged has an API server that answers each write with a large object, and with a version that
// its watch never reaches. It was kept for ever, and not charged to any budget.
func TestWhatIsObservedIsCharged(t *testing.T) {
	s := newStore(configMaps, func(Event) {}, func() {})
	s.budget.perKind = Limit{Objects: 10, Bytes: 1 << 20}
	if err := s.replace(s.itemsFor(object("known", "1", "5")), "5"); err != nil {
		t.Fatal(err)
	}
	const never = "18446744073709551615"
	for i := range 100 {
		o := object(fmt.Sprint("a", i), "u", never)
		o.Object["data"] = map[string]any{"x": strings.Repeat("x", 200<<10)}
		s.observe(o)
	}
	if s.budget.objects > 10 || s.budget.bytes > 1<<20 || len(s.observed.items) > 6 || len(s.observed.items) == 0 {
		t.Errorf("Want no more than the budget, got %d objects of %d bytes, of which %d were observed.", s.budget.objects, s.budget.bytes, len(s.observed.items))
	}
	if err := s.replace(s.itemsFor(object("known", "1", "5")), "6"); err != nil {
		t.Errorf("A list that fits is kept beside what was observed: %v.", err)
	}
	counted := s.known.bytes() + s.observed.bytes()
	if s.budget.bytes != counted {
		t.Errorf("Want %d bytes to be counted, got %d.", counted, s.budget.bytes)
	}
	s.advanceTo("18446744073709551616")
	if len(s.observed.items) > 0 || s.budget.objects != 1 || s.budget.bytes != s.known.bytes() {
		t.Errorf("Want what the watch has reached to be given back, got %d objects of %d bytes.", s.budget.objects, s.budget.bytes)
	}
}

// TestAnswersAboutOtherObjectsAreNotObserved has API servers answer with what was not written, and with versions of
// megabytes, which were compared at every event.
func TestAnswersAboutOtherObjectsAreNotObserved(t *testing.T) {
	s := newStore(configMaps, func(Event) {}, func() {})
	w := &Watcher{kinds: map[Kind]*subscription{configMaps: {kindWatch: &kindWatch{store: s}}}}
	if err := s.replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	written := objectKey(object("written", "u", "2"))
	w.Observe(configMaps, written, object("other", "u", "2"))
	w.Observe(configMaps, written, object("written", "u", strings.Repeat("9", 1<<20)))
	w.Observe(configMaps, written, object("written", strings.Repeat("u", 1<<20), "2"))
	if n := len(s.observed.items); n != 0 {
		t.Errorf("Want none of them to be kept, got %d.", n)
	}
	w.Observe(configMaps, written, object("written", "u", "2"))
	if n := len(s.observed.items); n != 1 {
		t.Errorf("Want what was written to be observed, got %d.", n)
	}
}

// TestManyObservedAreForgottenInTheEnd is about what the watch passes without reporting it: not at every event is all
// of what was observed looked through.
func TestManyObservedAreForgottenInTheEnd(t *testing.T) {
	s := newStore(configMaps, func(Event) {}, func() {})
	if err := s.replace(nil, "1"); err != nil {
		t.Fatal(err)
	}
	const many = 1000
	for i := range many {
		s.observe(object(fmt.Sprint("a", i), "u", fmt.Sprint(10+i)))
	}
	for i := range many {
		s.advanceTo(fmt.Sprint(10 + many + i))
	}
	if n := len(s.observed.items); n != 0 {
		t.Errorf("Want none to be left, got %d.", n)
	}
}
