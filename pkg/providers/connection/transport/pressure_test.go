// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// TestPressure simulates a process with the case's wake-up delay in each window.
func TestPressure(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		late   time.Duration
		// part is where that ends.
		part float64
	}{
		"Idle":  {reason: "Who has the processor to itself slows nobody down.", late: 0, part: 1},
		"Used":  {reason: "A core that is shared is not short.", late: time.Millisecond, part: 1},
		"Short": {reason: "While this process waits for a core, busy clusters have the least.", late: 5 * time.Millisecond, part: leastPart},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakeClock(time.Unix(1_000, 0))
			said := make(chan float64, 100)
			p := NewPressure(clk, func(part float64, _ time.Duration) { said <- part })
			if got := <-said; got != 1 {
				t.Errorf("want it to be said at once that nobody is slowed down, got %v", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				p.Run(ctx)
			}()
			if clk.HasWaiters() {
				t.Error("want the probe to rest while nobody asks")
			}
			window := func(late time.Duration) float64 {
				p.want(clk.Now())
				for {
					select {
					case part := <-said:
						return part
					default:
						if clk.HasWaiters() {
							clk.Step(probeStep + late)
						}
					}
				}
			}
			part := 1.0
			for range 30 {
				part = window(tc.late)
			}
			if part != tc.part {
				t.Errorf("%s want %v, got %v", tc.reason, tc.part, part)
			}
			for range 150 {
				part = window(0)
			}
			if part != 1 {
				t.Errorf("want everything to be as before when the processor is there again, got %v", part)
			}
			cancel()
			connectiontest.Eventually(t, "the probe ends", func() bool {
				select {
				case <-ended:
					return true
				default:
					clk.Step(probeStep)
					return false
				}
			})
		})
	}
}

// stoppedClock is the clock of a process that is stopped for longer than a window each time it begins to sleep.
type stoppedClock struct{ *clocktesting.FakeClock }

func (c stoppedClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(2 * pressureWindow)
	return timer
}

// TestProbeOfAStoppedProcess is about a machine that stands still for a moment. Before, the probe divided by the
// number of its sleeps, which was zero, and the process ended with a panic.
func TestProbeOfAStoppedProcess(t *testing.T) {
	p := NewPressure(stoppedClock{clocktesting.NewFakeClock(time.Unix(1_000, 0))}, func(float64, time.Duration) {})
	delay, ok := p.probe(t.Context())
	if want := 2*pressureWindow - probeStep; !ok || delay != want {
		t.Errorf("want the process to be %s late, got %s (%t)", want, delay, ok)
	}
}

// TestProbeRestsWhenNobodyAsks verifies that the probe costs nothing without busy clusters.
func TestProbeRestsWhenNobodyAsks(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(1_000, 0))
	p := NewPressure(clk, func(float64, time.Duration) {})
	go p.Run(t.Context())
	p.want(clk.Now())
	connectiontest.Eventually(t, "the probe looks", clk.HasWaiters)
	p.set(leastPart, time.Second)
	connectiontest.Eventually(t, "it rests, and slows nobody down", func() bool {
		if clk.HasWaiters() {
			clk.Step(time.Second)
			return false
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.part == 1
	})
}

// TestBusyClustersYield is about clusters that send much while the processor is short. Before, each of 24 of them had
// 100 events a second, regardless of how late that made the others.
func TestBusyClustersYield(t *testing.T) {
	limits := Pace{PerSecond: 2_000, SharedPerSecond: 2_000, LeastPerSecond: 5, BusyPerSecond: 100}
	for name, tc := range map[string]struct {
		reason string
		part   float64
		busy   int
		want   float64
	}{
		"Enough": {reason: "While the processor is not short, several share what there is.", part: 1, busy: 10, want: 200},
		"Short":  {reason: "While it is short, they share a part of it.", part: 0.1, busy: 10, want: 20},
		"Many":   {reason: "Each has the least however many they are.", part: leastPart, busy: 100, want: 5},
		"Alone":  {reason: "A single one has all of its own pace.", part: 1, busy: 1, want: 2_000},
		"AloneAndShort": {
			reason: "It yields, too. Before, it was read in full however late that made the others.",
			part:   leastPart, busy: 1, want: 2_000 * leastPart,
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_000, 0)
			p := NewPressure(clocktesting.NewFakeClock(now), func(float64, time.Duration) {})
			p.set(tc.part, 0)
			shared := NewShared(limits, p)
			for range tc.busy - 1 {
				shared.share(NewAllowance(limits, shared), true, 2_000, now)
			}
			if got := shared.share(NewAllowance(limits, shared), true, 2_000, now); got != tc.want {
				t.Errorf("%s want %v events a second, got %v", tc.reason, tc.want, got)
			}
			if got := shared.share(NewAllowance(limits, shared), false, 2_000, now); got != 2_000 {
				t.Errorf("want who sends little not to wait, got %v events a second", got)
			}
		})
	}
}
