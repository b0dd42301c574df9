// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// bytesPerEvent is how many bytes of events count as one event more.
const bytesPerEvent = 8 << 10

// pace bounds how fast the events of all watches of one connection are read, so that a cluster which repeats them without end, or sends
// bookmarks only, has a share of the processor and not all of it. Events are never dropped: what is not read has to wait in the
// API server, which ends watches that are too slow.
type pace struct {
	limiter *rate.Limiter
	clock   clock.Clock
	paused  prometheus.Counter
}

func newPace(l Limits, c clock.Clock, paused prometheus.Counter) *pace {
	l = l.withDefaults()
	return &pace{limiter: rate.NewLimiter(rate.Limit(l.EventsPerSecond), l.EventBurst), clock: c, paused: paused}
}

// ofWatch returns what bounded.Body.Pace takes, for one watch that ends with ctx.
func (p *pace) ofWatch(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	unpaid := int64(0)
	return func(stop <-chan struct{}, events, bytes int64) {
		unpaid += bytes
		events += unpaid / bytesPerEvent
		unpaid %= bytesPerEvent
		for events > 0 {
			n := min(events, int64(p.limiter.Burst()))
			events -= n
			now := p.clock.Now()
			if !p.wait(ctx, stop, p.limiter.ReserveN(now, int(n)).DelayFrom(now)) {
				return
			}
		}
	}
}

// wait is false if the watch ended meanwhile.
func (p *pace) wait(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	began := p.clock.Now()
	defer func() { p.paused.Add(p.clock.Since(began).Seconds()) }()
	timer := p.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}
