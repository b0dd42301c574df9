// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import "time"

const (
	// hungAfter is how long an item is in flight before it counts as one that hangs. A reconcile sends a few requests,
	// each of which an API server answers within milliseconds; one that is far away or busy needs a second for all.
	hungAfter = 2 * time.Second

	// The penalty of a cluster lasts penaltyFactor times as long as the item hung, but no longer than maxPenalty. So a
	// cluster whose items always hang spends a fifth of its time, at the most, on the workers that are meant for the
	// others.
	penaltyFactor = 4
	maxPenalty    = 2 * time.Minute
)

// window says how many items of one cluster may be in flight, by what became of those before it, as in TCP's slow
// start: it begins with one, doubles with each item that ends in time up to the limit, and falls back to one when an
// item hangs, where it stays for a penalty.
//
// A limit that never changes was rejected: a few clusters whose API servers answer probes and then nothing else would
// hold all workers for as long as a request may take.
type window struct {
	size, limit int
	// until is when the penalty ends.
	until time.Time
}

func newWindow(limit int) window { return window{size: 1, limit: limit} }

// penalised tells whether an item hung not long ago.
func (w *window) penalised(now time.Time) bool { return now.Before(w.until) }

// ended notes that an item has ended in time.
func (w *window) ended(now time.Time) {
	if !w.penalised(now) {
		w.size = min(w.limit, 2*w.size)
	}
}

// hung notes that an item was in flight for too long, and how long that was by now.
func (w *window) hung(now time.Time, took time.Duration) {
	w.size = 1
	if until := now.Add(min(penaltyFactor*took, maxPenalty)); until.After(w.until) {
		w.until = until
	}
}
