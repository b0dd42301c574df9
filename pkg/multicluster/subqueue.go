// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"iter"
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// subQueue is the part of a fair queue that belongs to one cluster. It is guarded by the lock of the fair queue.
type subQueue[R comparable] struct {
	name  mcr.ClusterName
	state gateState
	// window limits how many items may be in flight.
	window   window
	inFlight int
	// entries are all queued items, in any place.
	entries map[R]*entry[R]
	ready   readyEntries[R]
	// behind counts the entries whose place is placeBehind.
	behind int
	// limited are the items with failures in the rate limiter.
	limited map[R]struct{}
	// openedAt is when the gate was last opened. Items queued before that have waited for a worker since then.
	openedAt time.Time
	// idle is closed and dropped when no item is in flight any more. It is nil unless a caller waits for that.
	idle chan struct{}

	// prev and next link the ring of clusters that wait for their turn; both are nil outside it. lane is that of the ring.
	prev, next *subQueue[R]
	lane       lane
}

func newSubQueue[R comparable](name mcr.ClusterName, w window) *subQueue[R] {
	return &subQueue[R]{
		name:    name,
		window:  w,
		entries: map[R]*entry[R]{},
		ready:   newReadyEntries[R](),
		limited: map[R]struct{}{},
	}
}

// eligible reports whether a worker may take an item of the cluster.
func (s *subQueue[R]) eligible() bool {
	return s.state == gateOpen && s.ready.len() > 0 && s.inFlight < s.window.size
}

// inRing reports whether the cluster waits for its turn.
func (s *subQueue[R]) inRing() bool { return s.next != nil }

// depth returns the number of items that are due and not in flight.
func (s *subQueue[R]) depth() int { return s.ready.len() + s.behind }

// ring holds the clusters that a worker may serve, in the order of their turns.
//
// It is deficit round robin with equal item costs: with a quantum of one item, a cluster's deficit is used up each time
// it is served and is never carried over, so that no counter is needed. One item of the front cluster is served, and
// the cluster goes to the back.
type ring[R comparable] struct{ root subQueue[R] }

func (r *ring[R]) init() { r.root.prev, r.root.next = &r.root, &r.root }

func (r *ring[R]) front() *subQueue[R] {
	if r.root.next == &r.root {
		return nil
	}
	return r.root.next
}

// all iterates over the clusters in the order of their turns. The ring must not be changed meanwhile.
func (r *ring[R]) all() iter.Seq[*subQueue[R]] {
	return func(yield func(*subQueue[R]) bool) {
		for s := r.root.next; s != &r.root; s = s.next {
			if !yield(s) {
				return
			}
		}
	}
}

func (r *ring[R]) pushBack(s *subQueue[R]) {
	s.prev, s.next = r.root.prev, &r.root
	s.prev.next, s.next.prev = s, s
}

func (r *ring[R]) remove(s *subQueue[R]) {
	s.prev.next, s.next.prev = s.next, s.prev
	s.prev, s.next = nil, nil
}
