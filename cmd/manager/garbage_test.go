// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestPercentAfter(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		interval time.Duration
		inUse    uint64
		want     int
	}{
		"AtRest":       {reason: "At rest, memory counts.", interval: 2 * time.Minute, inUse: 20 * mebibyte, want: gcPercent},
		"AtWork":       {reason: "At work, a small heap has the room of a larger one.", interval: time.Second, inUse: 32 * mebibyte, want: 200},
		"Large":        {reason: "A large heap has enough room by its percentage.", interval: time.Second, inUse: 512 * mebibyte, want: gcPercent},
		"Empty":        {reason: "A heap that is nearly empty does not get it all at once.", interval: time.Second, inUse: mebibyte, want: maxGCPercent},
		"Unknown":      {reason: "Before the first collection nothing is known.", interval: time.Second, want: gcPercent},
		"Enormous":     {reason: "However large the heap, the percentage is never below that of rest.", interval: time.Second, inUse: math.MaxUint64, want: gcPercent},
		"JustNotBusy":  {reason: "Collections ten seconds apart cost next to nothing.", interval: busyInterval, inUse: 32 * mebibyte, want: gcPercent},
		"ClockSetBack": {reason: "A clock that is set back is no rest.", interval: -time.Second, inUse: 32 * mebibyte, want: 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentAfter(tc.interval, tc.inUse); got != tc.want {
				t.Errorf("%s want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	fake := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	var sets []int
	set := func(percent int) int { sets = append(sets, percent); return 0 }
	c := &collection{clock: fake, set: set, at: fake.Now(), percent: gcPercent}
	for _, step := range []struct {
		reason string
		after  time.Duration
		inUse  uint64
		want   []int
	}{
		{reason: "A collection soon after the start is work.", after: 6 * time.Second, inUse: 32 * mebibyte, want: []int{200}},
		{reason: "Time is counted from the last collection, and what stays is not set again.", after: 6 * time.Second, inUse: 32 * mebibyte, want: []int{200}},
		{reason: "With four times the room, a collection comes four times as late at the same work.", after: 39 * time.Second, inUse: 64 * mebibyte, want: []int{200, 100}},
		{reason: "With twice the room, twice as late is rest.", after: 20 * time.Second, inUse: 64 * mebibyte, want: []int{200, 100, 50}},
		{reason: "Work begins again.", after: time.Second, inUse: mebibyte, want: []int{200, 100, 50, 400}},
		{reason: "What Go forces is rest, however much room there was.", after: 2 * time.Minute, inUse: mebibyte, want: []int{200, 100, 50, 400, 50}},
	} {
		fake.Step(step.after)
		c.decide(step.inUse)
		if diff := cmp.Diff(step.want, sets); diff != "" {
			t.Fatalf("%s -want, +got:\n%s", step.reason, diff)
		}
	}
}

func TestTuneGarbageCollection(t *testing.T) {
	// The percentage of the process, which other tests have changed as well, is left unchanged.
	var last atomic.Int64
	set := func(percent int) int { return int(last.Swap(int64(percent))) }
	wall := clock.RealClock{}

	tuneGarbageCollection(func(string) string { return "100" }, wall, set)
	for range 3 {
		runtime.GC()
	}
	if got := last.Load(); got != 0 {
		t.Errorf("What the operator says counts, which the runtime has read already: it was set to %d", got)
	}

	tuneGarbageCollection(func(string) string { return "" }, wall, set)
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
