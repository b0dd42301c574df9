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
	// 100. A manager is nearly always idle, and holds connections and watches for each cluster: with less room for
	// garbage, a further cluster takes less memory.
	gcPercent = 50

	// busyRoom is how much is allocated, in bytes, before garbage is collected while the manager is busy, if that is
	// more than gcPercent. What a small fleet has in use is so little that half of it is allocated in a second. At 50
	// claims a second a collection came each second, and a fifth of the manager's processor time went into them
	// (docs/benchmarks.md).
	busyRoom = 64 * mebibyte

	// busyInterval distinguishes a busy manager from an idle one: in a busy one, with room for gcPercent, a collection
	// follows the last one sooner.
	busyInterval = 10 * time.Second

	// maxGCPercent bounds the percentage of a small heap. A manager that has just begun has one, which soon grows, and a
	// percentage in the thousands would then let too much garbage pile up. It is so low that the collection which Go
	// forces after two minutes counts as that of an idle manager.
	maxGCPercent = 400
)

// tuneGarbageCollection sets the percentage by set, which is debug.SetGCPercent: a low one while the manager is idle, a
// higher one while it is busy. If the operator has set GOGC, it does nothing. GOMEMLIMIT counts in any case.
func tuneGarbageCollection(env func(string) string, c clock.PassiveClock, set func(int) int) {
	if env("GOGC") != "" {
		return
	}
	set(gcPercent)
	runtime.SetFinalizer(&collection{clock: c, set: set, at: c.Now(), percent: gcPercent}, (*collection).ended)
}

// collection remembers the last collection. Nothing refers to it, so each collection finds it unused and calls its
// finalizer.
type collection struct {
	clock   clock.PassiveClock
	set     func(int) int
	at      time.Time
	percent int
}

// ended decides when the next collection comes, and asks to be called after it.
func (c *collection) ended() {
	c.decide(inUse())
	runtime.SetFinalizer(c, (*collection).ended)
}

// decide sets the percentage until the next collection. The last one left so many bytes in use.
func (c *collection) decide(inUse uint64) {
	now := c.clock.Now()
	// The interval is computed as if the room had been that of an idle manager. Otherwise the larger room of a busy
	// manager would itself make the manager look idle, and every second collection would come early.
	interval := now.Sub(c.at) * gcPercent / time.Duration(c.percent)
	if percent := percentAfter(interval, inUse); percent != c.percent {
		c.set(percent)
		c.percent = percent
	}
	c.at = now
}

// percentAfter returns the percentage until the next collection. The interval is the time between the last two, and
// inUse is what the last one left, in bytes.
func percentAfter(interval time.Duration, inUse uint64) int {
	if interval >= busyInterval || inUse == 0 {
		return gcPercent
	}
	return max(gcPercent, int(min(100*busyRoom/inUse, maxGCPercent))) //nolint:gosec // It is at most maxGCPercent.
}

// inUse is what the runtime multiplies by the percentage, in bytes: the heap that the last collection left, stacks, and
// global variables.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}
