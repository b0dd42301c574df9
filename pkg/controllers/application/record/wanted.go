// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

const (
	// maxWanted is how many marks the Applications of a cluster look for at most. Who writes Applications there decides
	// how many.
	maxWanted = 16384

	// maxWantedOfNamespace is how many marks the Applications of one namespace look for, each counted for each
	// Application, so that nobody takes all that there is.
	maxWantedOfNamespace = maxWanted / 4

	// MaxUsesOfMark is how many Applications of one namespace look for one mark: an object that bears it wakes them all.
	// Objects without a namespace have marks that all namespaces look for, so those of one leave room for those of
	// others.
	MaxUsesOfMark = 256

	// relistEvery is how far apart lists of a kind are at least that are begun because marks are looked for that nobody
	// looked for before. Who changes Applications decides how often that is.
	relistEvery = 10 * time.Second
)

// WantedMarks are the marks that the Applications of a cluster look for. Of an object that bears none of them nothing
// is kept, so that what is kept grows with what is discovered, and not with what could be. It is safe for concurrent
// use.
type WantedMarks struct {
	clock clock.PassiveClock

	mu    sync.RWMutex
	marks map[Mark]*wantedMark
	by    map[ApplicationKey][]Mark

	// uses is how many marks the Applications of a namespace look for.
	uses map[string]int

	// generation grows when a mark is looked for that was not before, and is 1 at first.
	generation uint64

	// relisted is when a kind was last listed again because of marks.
	relisted map[schema.GroupKind]time.Time
}

// wantedMark is a mark that somebody looks for.
type wantedMark struct {
	// mark is the text that all records share.
	mark Mark

	// since is the generation from which on objects with the mark are kept.
	since uint64

	by sets.Set[ApplicationKey]

	// in is how many of these are in a namespace.
	in map[string]int
}

func (m *wantedMark) add(key ApplicationKey) {
	if !m.by.Has(key) {
		m.by.Insert(key)
		m.in[key.Namespace]++
	}
}

func (m *wantedMark) remove(key ApplicationKey) {
	m.by.Delete(key)
	if m.in[key.Namespace]--; m.in[key.Namespace] == 0 {
		delete(m.in, key.Namespace)
	}
}

// isFull is whether the Applications of a namespace look for the mark so often that one more does not.
func (m *wantedMark) isFull(key ApplicationKey) bool {
	return m != nil && m.in[key.Namespace] >= MaxUsesOfMark && !m.by.Has(key)
}

// NewWantedMarks returns the marks of a cluster of which none is looked for yet.
func NewWantedMarks(clk clock.PassiveClock) *WantedMarks {
	return &WantedMarks{
		clock: clk, marks: map[Mark]*wantedMark{}, by: map[ApplicationKey][]Mark{}, uses: map[string]int{}, generation: 1, relisted: map[schema.GroupKind]time.Time{},
	}
}

// Want makes some marks all that an Application looks for, but for those that its namespace looks for too often, which
// are left out. It returns the generation of which lists have all objects that bear them, what is left out, and false
// if there are too many; then it goes on looking for those that it looked for before.
func (w *WantedMarks) Want(key ApplicationKey, marks []Mark) (since uint64, leftOut []Mark, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.by[key], marks) {
		full := func(m Mark) bool { return w.marks[m].isFull(key) }
		for _, m := range marks {
			if full(m) {
				leftOut = append(leftOut, m)
			}
		}
		if !w.replace(key, slices.DeleteFunc(slices.Clone(marks), full)) {
			return 0, nil, false
		}
	}
	for _, m := range w.by[key] {
		since = max(since, w.marks[m].since)
	}
	return since, leftOut, true
}

// replace is want for marks that differ. The caller holds mu.
func (w *WantedMarks) replace(key ApplicationKey, marks []Mark) (ok bool) {
	before := w.by[key]
	missing, ok := w.admits(key, marks)
	if !ok {
		return false
	}
	if missing > 0 {
		w.generation++
	}
	// What is kept of an Application are the texts that all share, not its own.
	shared := make([]Mark, 0, len(marks))
	for _, m := range marks {
		if w.marks[m] == nil {
			w.marks[m] = &wantedMark{mark: m, since: w.generation, by: sets.New[ApplicationKey](), in: map[string]int{}}
		}
		w.marks[m].add(key)
		shared = append(shared, w.marks[m].mark)
	}
	for _, m := range before {
		if slices.Contains(marks, m) {
			continue
		}
		if w.marks[m].remove(key); len(w.marks[m].by) == 0 {
			delete(w.marks, m)
		}
	}
	if len(shared) > 0 {
		w.by[key] = shared
	} else {
		delete(w.by, key)
	}
	if w.uses[key.Namespace] += len(shared) - len(before); w.uses[key.Namespace] == 0 {
		delete(w.uses, key.Namespace)
	}
	return true
}

// admits is whether there is room for the marks of an Application instead of those that it has, and how many of them
// nobody looks for yet. The caller holds mu.
func (w *WantedMarks) admits(key ApplicationKey, marks []Mark) (missing int, ok bool) {
	for _, m := range marks {
		if w.marks[m] == nil {
			missing++
		}
	}
	fewer := len(marks) <= len(w.by[key])
	if missing > 0 && len(w.marks)+missing > maxWanted {
		return 0, false
	}
	return missing, fewer || w.uses[key.Namespace]+len(marks)-len(w.by[key]) <= maxWantedOfNamespace
}

// Current is the generation that a list has that begins now.
func (w *WantedMarks) Current() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.generation
}

// UsersOf are the Applications that look for one of some marks.
func (w *WantedMarks) UsersOf(marks []Mark) []ApplicationKey {
	w.mu.RLock()
	defer w.mu.RUnlock()
	users := sets.New[ApplicationKey]()
	for _, m := range marks {
		if used := w.marks[m]; used != nil {
			for key := range used.by {
				users.Insert(key)
			}
		}
	}
	return slices.Collect(maps.Keys(users))
}

// on are the marks of an object that somebody looks for, with its inventory if it is looked for by its name; nil if
// there are none.
func (w *WantedMarks) on(gk schema.GroupKind, obj *unstructured.Unstructured) *Markings {
	if w == nil {
		return nil
	}
	w.mu.RLock()
	none := len(w.marks) == 0
	w.mu.RUnlock()
	if none {
		return nil
	}
	var out *Markings
	borne := marksOfObject(gk, obj)
	w.mu.RLock()
	for _, m := range borne {
		if used := w.marks[m]; used != nil {
			if out == nil {
				out = &Markings{}
			}
			out.Marks = append(out.Marks, used.mark)
		}
	}
	w.mu.RUnlock()
	if out != nil {
		out.Marks = slices.Clip(out.Marks)
		if out.Marks[0] == borne[0] {
			out.Inventory = inventoryIn(gk, obj)
		}
	}
	return out
}

// MayRelist is whether a kind may be listed again now, which it then is to be.
func (w *WantedMarks) MayRelist(gk schema.GroupKind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	maps.DeleteFunc(w.relisted, func(_ schema.GroupKind, at time.Time) bool { return now.Sub(at) >= relistEvery })
	if _, recently := w.relisted[gk]; recently {
		return false
	}
	w.relisted[gk] = now
	return true
}
