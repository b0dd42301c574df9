// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

func TestPercentAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		interval time.Duration
		live     uint64
		want     int
	}{
		"AtRest":       {reason: "At rest, memory counts.", interval: 2 * time.Minute, live: 20 * mebibyte, want: gcPercent},
		"AtWork":       {reason: "At work, a small heap has the room of a larger one.", interval: time.Second, live: 32 * mebibyte, want: 200},
		"Large":        {reason: "A large heap has enough room by its percentage.", interval: time.Second, live: 512 * mebibyte, want: gcPercent},
		"Empty":        {reason: "A heap that is nearly empty does not get it all at once.", interval: time.Second, live: mebibyte, want: maxGCPercent},
		"Unknown":      {reason: "Before the first collection nothing is known.", interval: time.Second, want: gcPercent},
		"Enormous":     {reason: "No heap makes a percentage that is none.", interval: time.Second, live: math.MaxUint64, want: gcPercent},
		"JustNotBusy":  {reason: "Collections ten seconds apart cost next to nothing.", interval: busyInterval, live: 32 * mebibyte, want: gcPercent},
		"Simultaneous": {reason: "A clock that is set back is no rest.", interval: -time.Second, live: 32 * mebibyte, want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentAfter(tc.interval, tc.live); got != tc.want {
				t.Errorf("%s want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

func TestTuneGarbageCollection(t *testing.T) {
	// The percentage of the process is left alone, which other tests have changed as well.
	var last atomic.Int64
	set := func(percent int) int { return int(last.Swap(int64(percent))) }

	tuneGarbageCollection(func(string) string { return "100" }, clock.RealClock{}, set)
	if got := last.Load(); got != 0 {
		t.Errorf("What the operator says counts, which the runtime has read already: it was set to %d", got)
	}

	tuneGarbageCollection(func(string) string { return "" }, clock.RealClock{}, set)
	if got := last.Load(); got != gcPercent {
		t.Errorf("Without a word of the operator, garbage is collected earlier: want %d, got %d", gcPercent, got)
	}
	collectUntil := func(reason string, met func(percent int64) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !met(last.Load()); runtime.GC() {
			if time.Now().After(deadline) {
				t.Fatal(reason)
			}
		}
	}
	collectUntil("Collections that follow each other at once do not come later.", func(p int64) bool { return p > gcPercent })
	retained := make([]byte, 256*mebibyte)
	collectUntil("Only the first collection was looked at.", func(p int64) bool { return p == gcPercent })
	runtime.KeepAlive(retained)
}
