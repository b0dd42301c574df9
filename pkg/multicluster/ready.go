// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

// aheadInARow is the maximum number of entries with a positive priority that are served before one of the rest of their
// cluster. So the rest get at least a quarter of the cluster's turns.
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

// pop returns the entry whose turn it is. There must be one.
func (r *readyEntries[R]) pop() *entry[R] {
	if r.ahead.len() > 0 && (r.inARow < aheadInARow || r.rest.len() == 0) {
		r.inARow++
		return r.ahead.pop()
	}
	r.inARow = 0
	return r.rest.pop()
}

// raise changes the priority and sequence number of an entry.
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
