// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
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
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })

	tuneGarbageCollection(func(string) string { return "100" })
	if got := currentPercent(); got != 100 {
		t.Errorf("What the operator says counts, which the runtime has read already: want 100, got %d", got)
	}

	tuneGarbageCollection(func(string) string { return "" })
	if got := currentPercent(); got != gcPercent {
		t.Errorf("Without a word of the operator, garbage is collected earlier: want %d, got %d", gcPercent, got)
	}
	// The heap of a test is small, and the collections follow each other at once.
	deadline := time.Now().Add(time.Minute)
	for currentPercent() <= gcPercent {
		if time.Now().After(deadline) {
			t.Fatal("Collections that follow each other at once do not come later.")
		}
		runtime.GC()
	}
	// Once more: the finalizer has asked to be called again.
	debug.SetGCPercent(100)
	retained := make([]byte, 256*mebibyte)
	for currentPercent() != gcPercent {
		if time.Now().After(deadline) {
			t.Fatal("Only the first collection was looked at.")
		}
		runtime.GC()
	}
	runtime.KeepAlive(retained)
}

func currentPercent() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64()) //nolint:gosec // A percentage.
}
