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
	// maxWanted bounds the marks that the Applications of a cluster look for. Their authors decide how many that would be.
	maxWanted = 16384

	// maxWantedOfNamespace bounds the marks of one namespace, summed over its Applications, so that no namespace uses up
	// all of them.
	maxWantedOfNamespace = maxWanted / 4

	// MaxUsesOfMark bounds how many Applications of one namespace look for one mark: an object that bears it wakes them
	// all. Marks of cluster-scoped objects are shared by all namespaces, so each leaves room for others.
	MaxUsesOfMark = 256

	// relistEvery is the minimum interval between lists of a kind triggered by new marks. Authors of Applications decide
	// how often these appear.
	relistEvery = 10 * time.Second
)

// WantedMarks are the marks that the Applications of a cluster look for. Objects without any of them are not kept, so
// that memory grows with the objects discovered rather than all objects. It is safe for concurrent use.
type WantedMarks struct {
	clock clock.PassiveClock

	mu    sync.RWMutex
	marks map[Mark]*wantedMark
	by    map[ApplicationKey][]Mark

	// uses counts the marks that the Applications of a namespace look for.
	uses map[string]int

	// generation starts at 1 and grows with each newly wanted mark.
	generation uint64

	// relisted is when a kind was last relisted because of marks.
	relisted map[schema.GroupKind]time.Time
}

// wantedMark is a mark that some Application looks for.
type wantedMark struct {
	// mark is the text shared by all records.
	mark Mark

	// since is the generation since which objects with the mark are kept.
	since uint64

	by sets.Set[ApplicationKey]

	// in counts these per namespace.
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

// isFull reports whether the Applications of a namespace use up their share of the mark.
func (m *wantedMark) isFull(key ApplicationKey) bool {
	return m != nil && m.in[key.Namespace] >= MaxUsesOfMark && !m.by.Has(key)
}

// NewWantedMarks returns the WantedMarks of a cluster, initially without marks.
func NewWantedMarks(clk clock.PassiveClock) *WantedMarks {
	return &WantedMarks{
		clock: clk, marks: map[Mark]*wantedMark{}, by: map[ApplicationKey][]Mark{}, uses: map[string]int{}, generation: 1, relisted: map[schema.GroupKind]time.Time{},
	}
}

// Want replaces the marks that an Application looks for, leaving out those used up by its namespace. It returns the
// generation of lists that have all objects with them, the marks left out, and false if there are too many; then the
// previous marks are kept.
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

// replace is Want for marks that differ. The caller holds mu.
func (w *WantedMarks) replace(key ApplicationKey, marks []Mark) (ok bool) {
	before := w.by[key]
	missing, ok := w.admits(key, marks)
	if !ok {
		return false
	}
	if missing > 0 {
		w.generation++
	}
	// An Application's entry holds the shared texts, not its own.
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

// admits reports whether there is room for an Application's new marks in place of its old ones, and how many of them
// are not wanted yet. The caller holds mu.
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

// Current is the generation of a list that starts now.
func (w *WantedMarks) Current() uint64 {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.generation
}

// Users are the Applications that look for any of the marks.
func (w *WantedMarks) Users(marks []Mark) []ApplicationKey {
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

// on are the wanted marks of an object, with its inventory if the object is wanted by name; nil if there are none.
func (w *WantedMarks) on(gk schema.GroupKind, obj *unstructured.Unstructured, controlled bool) *Markings {
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
	borne := marksOfObject(gk, obj, controlled)
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

// MayRelist reports whether a kind may be relisted now. If so, the caller must relist it.
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
