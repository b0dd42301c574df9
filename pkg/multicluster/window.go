// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import "time"

const (
	// hungAfter is how long an item is in flight before it counts as hanging. A reconcile sends a few requests, each of
	// which an API server answers within milliseconds; a distant or busy one needs a second for all.
	hungAfter = 2 * time.Second

	// The penalty of a cluster is penaltyFactor times as long as the item hung, but no longer than maxPenalty. So a
	// cluster whose items always hang spends at most a fifth of its time on the workers of the fast lane.
	penaltyFactor = 4
	maxPenalty    = 2 * time.Minute
)

// window limits the items in flight of one cluster, similar to TCP's slow start: it begins with one, doubles with each
// item that ends in time, up to the limit, and falls back to one for a penalty when an item hangs.
//
// A fixed limit was rejected: a few clusters whose API servers answer only probes would hold all workers for as long as
// a request may take.
type window struct {
	size, limit int
	// until is when the penalty ends.
	until time.Time
}

func newWindow(limit int) window { return window{size: 1, limit: limit} }

// penalised reports whether an item hung recently.
func (w *window) penalised(now time.Time) bool { return now.Before(w.until) }

// ended records that an item has ended in time.
func (w *window) ended(now time.Time) {
	if !w.penalised(now) {
		w.size = min(w.limit, 2*w.size)
	}
}

// hung records that an item has been in flight for too long, and for how long.
func (w *window) hung(now time.Time, took time.Duration) {
	w.size = 1
	if until := now.Add(min(penaltyFactor*took, maxPenalty)); until.After(w.until) {
		w.until = until
	}
}
