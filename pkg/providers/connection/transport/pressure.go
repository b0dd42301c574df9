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
	// probeStep is for how long the probe of the processor sleeps each time, and pressureWindow how often what it has seen
	// is judged.
	probeStep      = 10 * time.Millisecond
	pressureWindow = 250 * time.Millisecond

	// mostDelay is how late the probe may be on average before the processor counts as short. On two cores of which one
	// was busy it was 0.7 to 0.8 ms late; beside honest claims, while 24 hostile clusters came, 0.6 to 12 ms.
	mostDelay = 1250 * time.Microsecond

	// In a window in which the processor is short, busy clusters are read more slowly by slowDown, down to leastPart of
	// what they may have, and in each other one faster by speedUp. So they yield within about a second, and have
	// everything again after about twenty.
	slowDown, speedUp, leastPart = 0.6, 1.03, 1.0 / 8
)

// Pressure says how short of processor time this process is, by how late it wakes up from a short sleep: that counts
// both the wait for a core and the wait for the Go scheduler, whoever takes them. How much processor time the process
// uses was rejected as a measure: a limit of that has honest clusters wait although nobody is kept from anything.
type Pressure struct {
	clock clock.Clock
	tell  func(part float64, delay time.Duration)

	mu sync.Mutex
	// wanted is when somebody asked last. The probe rests if nobody does.
	wanted time.Time
	wake   chan struct{}
	// part is which part of their pace busy clusters may have.
	part float64
}

// NewPressure returns a probe of the processor. Run has it look. tell is called with the part that busy clusters have,
// and with how late this process woke up on average, zero while nobody asks. It must not block.
func NewPressure(clk clock.Clock, tell func(part float64, delay time.Duration)) *Pressure {
	tell(1, 0)
	return &Pressure{clock: clk, tell: tell, part: 1, wake: make(chan struct{}, 1)}
}

// want is which part of their pace busy clusters may have, 1 while the processor is not short. It has the probe
// look from now on.
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

// Run looks until ctx ends. While no cluster is busy, it does nothing.
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

// probe is how late this process wakes up on average, in one window. It is false if ctx has ended. It sleeps at least
// once: a process that is stopped for longer than a window before its first sleep is as late as that.
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

// judge draws the conclusion of one window.
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
