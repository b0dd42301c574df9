// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liveheap reports to tests how much of the heap of their process was in use at most.
//
// It takes what the garbage collector itself has found to be in use, at the end of each collection, and makes it
// collect whenever the heap has grown by a quarter. The size of the heap is not suitable: right after a collection it
// already includes what other goroutines have allocated since, which is unbounded on a busy machine. Continuous
// collections are not suitable either: they used more CPU time than what the tests are about.
package liveheap

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

const (
	// collectAfter is the growth of the heap, in percent, after which its garbage is collected.
	collectAfter = 25

	// interval is the time between two reads of what the last collection has found.
	interval = 2 * time.Millisecond
)

// Watch measures how many bytes of the heap are in use until the function that it returns is called. That function
// returns the largest growth since the beginning. What is allocated during a collection counts as used. The garbage
// collector is that of the whole process: only one test may watch at a time.
func Watch(tb testing.TB) (grown func() uint64) {
	tb.Helper()
	before := debug.SetGCPercent(collectAfter)
	runtime.GC()
	runtime.GC() // What the first collection has found to be garbage may have had finalizers.
	base := inUse()
	ctx, end := context.WithCancel(tb.Context())
	peaks := make(chan uint64, 1)
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for peak := base; ; peak = max(peak, inUse()) {
			select {
			case <-ctx.Done():
				peaks <- peak
				return
			case <-ticker.C:
			}
		}
	}()
	tb.Cleanup(func() {
		end()
		debug.SetGCPercent(before)
	})
	return func() uint64 {
		runtime.GC() // What is in use now counts too.
		now := inUse()
		end()
		return max(<-peaks, now) - base
	}
}

// inUse is how many bytes the last collection has found to be in use.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
