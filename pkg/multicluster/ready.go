// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

// aheadInARow is how many entries with a positive priority go ahead of the others of their cluster at most, before one
// of these has its turn. A cluster in which the former never end still has a quarter of its turns for the latter.
const aheadInARow = 3

// readyEntries are the entries of one cluster that a worker may take: those with a positive priority, and the rest.
type readyEntries[R comparable] struct {
	ahead, rest entryHeap[R]

	// inARow counts the entries with a positive priority since one of the rest was taken.
	inARow int
}

func newReadyEntries[R comparable]() readyEntries[R] {
	return readyEntries[R]{ahead: newEntryHeap(goesBefore[R]), rest: newEntryHeap(goesBefore[R])}
}

func (r *readyEntries[R]) len() int { return r.ahead.len() + r.rest.len() }

func (r *readyEntries[R]) push(e *entry[R]) { r.of(e).push(e) }

// pop returns the entry whose turn it is. There has to be one.
func (r *readyEntries[R]) pop() *entry[R] {
	if r.ahead.len() > 0 && (r.inARow < aheadInARow || r.rest.len() == 0) {
		r.inARow++
		return r.ahead.pop()
	}
	r.inARow = 0
	return r.rest.pop()
}

// raise gives an entry another priority, and its place in the order.
func (r *readyEntries[R]) raise(e *entry[R], priority int, seq uint64) {
	r.of(e).remove(e)
	e.priority, e.seq = priority, seq
	r.push(e)
}

func (r *readyEntries[R]) of(e *entry[R]) *entryHeap[R] {
	if e.priority > 0 {
		return &r.ahead
	}
	return &r.rest
}
