// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// probeStep is how long the processor probe sleeps each time, and pressureWindow how often its result is evaluated.
	probeStep      = 10 * time.Millisecond
	pressureWindow = 250 * time.Millisecond

	// mostDelay is the average delay of the probe above which the processor counts as short. With one of two cores busy it
	// was 0.7 to 0.8 ms; beside honest claims, while 24 hostile clusters were added, 0.6 to 12 ms.
	mostDelay = 1250 * time.Microsecond

	// In each window with a short processor, the pace of busy clusters is multiplied by slowDown, down to leastPart of
	// their pace, and in each other window by speedUp. So they yield within about a second, and recover fully after about
	// twenty.
	slowDown, speedUp, leastPart = 0.6, 1.03, 1.0 / 8
)

// Pressure measures how short of processor time this process is, by how late it wakes up from a short sleep: this
// includes the wait for a core and for the Go scheduler, regardless of the cause. The process's processor usage was
// rejected as a measure: limiting it would delay honest clusters even when nothing else waits.
type Pressure struct {
	clock clock.Clock
	tell  func(part float64, delay time.Duration)

	mu sync.Mutex
	// wanted is the time of the last call of want. The probe stops without calls.
	wanted time.Time
	wake   chan struct{}
	// part is the fraction of their pace that busy clusters get.
	part float64
}

// NewPressure returns a probe of the processor. Run runs it. tell is called with the fraction for busy clusters, and
// with the average wake-up delay, zero while the probe is stopped. It must not block.
func NewPressure(clk clock.Clock, tell func(part float64, delay time.Duration)) *Pressure {
	tell(1, 0)
	return &Pressure{clock: clk, tell: tell, part: 1, wake: make(chan struct{}, 1)}
}

// want returns the fraction of their pace that busy clusters get, 1 while the processor is not short. It starts the
// probe.
func (p *Pressure) want(now time.Time) float64 {
	if p == nil {
		return 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.After(p.wanted) {
		p.wanted = now
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return p.part
}

// Run probes until ctx ends. While no cluster is busy, it does nothing.
func (p *Pressure) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		}
		for p.isWanted() {
			delay, ok := p.probe(ctx)
			if !ok {
				return
			}
			p.judge(delay)
		}
		p.set(1, 0)
	}
}

func (p *Pressure) isWanted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.Since(p.wanted) < busyFor
}

// probe returns the average wake-up delay in one window, and false if ctx has ended. It sleeps at least once: a process
// that is stopped for longer than a window before its first sleep has that delay.
func (p *Pressure) probe(ctx context.Context) (time.Duration, bool) {
	begun, late := p.clock.Now(), time.Duration(0)
	timer := p.clock.NewTimer(probeStep)
	defer timer.Stop()
	slept := begun
	for n := time.Duration(1); ; n++ {
		select {
		case <-ctx.Done():
			return 0, false
		case <-timer.C():
		}
		now := p.clock.Now()
		late += max(0, now.Sub(slept)-probeStep)
		if now.Sub(begun) >= pressureWindow {
			return late / n, true
		}
		slept = now
		timer.Reset(probeStep)
	}
}

// judge evaluates one window.
func (p *Pressure) judge(delay time.Duration) {
	p.mu.Lock()
	part := p.part
	p.mu.Unlock()
	if delay > mostDelay {
		part = max(leastPart, part*slowDown)
	} else {
		part = min(1, part*speedUp)
	}
	p.set(part, delay)
}

func (p *Pressure) set(part float64, delay time.Duration) {
	p.mu.Lock()
	p.part = part
	p.mu.Unlock()
	p.tell(part, delay)
}
