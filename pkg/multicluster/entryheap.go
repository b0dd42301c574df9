// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"container/heap"
	"time"
)

// place is where an entry is queued.
type place int

const (
	// placeWaiting is the heap of delayed entries.
	placeWaiting place = iota
	// placeReady is among its cluster's entries that a worker may take.
	placeReady
	// placeBehind means that the entry is due while its item is in flight: it becomes ready on Done.
	placeBehind
)

// entry is a queued item.
type entry[R comparable] struct {
	item     R
	sub      *subQueue[R]
	priority int
	// seq is greater for later entries, and makes equal priorities FIFO.
	seq uint64
	// readyAt is when a waiting entry becomes due.
	readyAt time.Time
	// since is when it became due.
	since time.Time
	place place
	// index is its position in its heap.
	index int
}

// becomesDueBefore orders the delayed entries.
func becomesDueBefore[R comparable](a, b *entry[R]) bool {
	if !a.readyAt.Equal(b.readyAt) {
		return a.readyAt.Before(b.readyAt)
	}
	return goesBefore(a, b)
}

// goesBefore orders the entries of one heap that are due: by priority, then by age.
func goesBefore[R comparable](a, b *entry[R]) bool {
	if a.priority != b.priority {
		return a.priority > b.priority
	}
	return a.seq < b.seq
}

// entryHeap is a heap of entries, each of which knows its position, so that any can be removed or moved in O(log n). An
// entry is in one heap at most.
type entryHeap[R comparable] struct{ s entrySlice[R] }

func newEntryHeap[R comparable](less func(a, b *entry[R]) bool) entryHeap[R] {
	return entryHeap[R]{s: entrySlice[R]{less: less}}
}

func (h *entryHeap[R]) len() int           { return len(h.s.entries) }
func (h *entryHeap[R]) push(e *entry[R])   { heap.Push(&h.s, e) }
func (h *entryHeap[R]) pop() *entry[R]     { return heap.Pop(&h.s).(*entry[R]) }
func (h *entryHeap[R]) remove(e *entry[R]) { heap.Remove(&h.s, e.index) }

// peek returns the first entry, or nil.
func (h *entryHeap[R]) peek() *entry[R] {
	if len(h.s.entries) == 0 {
		return nil
	}
	return h.s.entries[0]
}

// entrySlice implements heap.Interface.
type entrySlice[R comparable] struct {
	less    func(a, b *entry[R]) bool
	entries []*entry[R]
}

func (s *entrySlice[R]) Len() int           { return len(s.entries) }
func (s *entrySlice[R]) Less(i, j int) bool { return s.less(s.entries[i], s.entries[j]) }

func (s *entrySlice[R]) Swap(i, j int) {
	s.entries[i], s.entries[j] = s.entries[j], s.entries[i]
	s.entries[i].index, s.entries[j].index = i, j
}

// Push implements heap.Interface.
func (s *entrySlice[R]) Push(x any) {
	e := x.(*entry[R])
	e.index = len(s.entries)
	s.entries = append(s.entries, e)
}

// Pop implements heap.Interface.
func (s *entrySlice[R]) Pop() any {
	last := len(s.entries) - 1
	e := s.entries[last]
	s.entries[last] = nil
	s.entries = s.entries[:last]
	return e
}
