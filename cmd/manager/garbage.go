// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/metrics"
	"time"

	"k8s.io/utils/clock"
)

const (
	// gcPercent is how much is allocated, in percent of what is in use, before garbage is collected. Go's own default is
	// 100. A manager is at rest nearly always, and holds connections and watches for each cluster: with less room for
	// garbage, a further cluster takes less memory.
	gcPercent = 50

	// busyRoom is the least that is allocated, in bytes, before garbage is collected while the manager is at work. What
	// is in use is often so little that half of it is allocated in a second. At 50 claims a second a collection came
	// each second, kept both processors of a small machine for some 60 ms, and took a quarter of the manager's processor
	// time (docs/benchmarks.md).
	busyRoom = 64 * mebibyte

	// busyInterval is how soon after the last a collection comes while the manager is at work. At rest, Go collects every
	// two minutes.
	busyInterval = 10 * time.Second
)

// tuneGarbageCollection has the runtime collect garbage earlier than is Go's default, and later while the manager is at
// work, unless the operator says otherwise by Go's own variable. A memory limit counts in any case. What sets the
// percentage is debug.SetGCPercent.
func tuneGarbageCollection(env func(string) string, c clock.PassiveClock, set func(int) int) {
	if env("GOGC") != "" {
		return
	}
	set(gcPercent)
	runtime.SetFinalizer(&collection{clock: c, set: set, at: c.Now(), percent: gcPercent}, (*collection).ended)
}

// collection is the last one. Nothing refers to it, so that the runtime calls its finalizer after each collection.
type collection struct {
	clock   clock.PassiveClock
	set     func(int) int
	at      time.Time
	percent int
}

// ended decides when the next collection comes, and asks to be called after it.
func (c *collection) ended() {
	now := c.clock.Now()
	if percent := percentAfter(now.Sub(c.at), liveHeap()); percent != c.percent {
		c.set(percent)
		c.percent = percent
	}
	c.at = now
	runtime.SetFinalizer(c, (*collection).ended)
}

// percentAfter is for the next collection, given when the last one came after the one before it and how many bytes it
// left in use.
func percentAfter(interval time.Duration, live uint64) int {
	if interval >= busyInterval || live == 0 {
		return gcPercent
	}
	return max(gcPercent, int(min(100*busyRoom/live, maxGCPercent))) //nolint:gosec // It is at most maxGCPercent.
}

// maxGCPercent keeps a heap that is nearly empty from having its percentage in the thousands: it grows when the manager
// has just begun, and garbage is to be collected when it has.
const maxGCPercent = 400

// liveHeap is how many bytes the last collection left in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
