// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

const (
	// bytesPerEvent is how many bytes of events count as one event more.
	bytesPerEvent = 8 << 10

	// lateAfter is for how long events must have had to wait, without a pause of the cluster, before that is told. The
	// first list of a large cluster may take so long.
	lateAfter = time.Minute

	// restedAfter is for how long a cluster must have been silent to be late no more.
	restedAfter = 10 * time.Second
)

// errEventsDelayed says that a cluster sends more events than are read.
var errEventsDelayed = errors.New("the cluster sends more events than are read")

// An allowance is how many events of one enrolled cluster may be read, by all of its connections, so that a cluster
// does not get more by closing them.
type allowance struct {
	limiters []*rate.Limiter
	// perSecond is the limit of the first limiter while the cluster has no others to share with.
	perSecond float64
	shared    *sharedPace

	mu sync.Mutex
	// late is since when events have had to wait without a pause of the cluster, zero if they do not, and told when that
	// was last told.
	late, told time.Time
	// last is when events were last taken.
	last time.Time
}

// newAllowance returns the allowance of one cluster. shared is nil if it has no others to share with.
func newAllowance(l Limits, shared *sharedPace) *allowance {
	l = l.withDefaults()
	return &allowance{perSecond: float64(l.EventsPerSecond), shared: shared, limiters: []*rate.Limiter{
		rate.NewLimiter(rate.Limit(l.EventsPerSecond), l.EventBurst),
		rate.NewLimiter(rate.Limit(l.SustainedEventsPerSecond), l.SustainedEventBurst),
	}}
}

// most is how many events can be taken at once.
func (a *allowance) most() int64 {
	n := a.limiters[0].Burst()
	for _, l := range a.limiters[1:] {
		n = min(n, l.Burst())
	}
	return int64(n)
}

// take takes n events, no more than most. It returns for how long these have to wait, and whether it is time to tell
// that the cluster sends too many.
func (a *allowance) take(n int64, now time.Time) (wait time.Duration, tell bool) {
	first := a.limiters[0]
	a.mu.Lock()
	if rest := now.Sub(a.last); !a.last.IsZero() && rest >= busyFor {
		// It was not busy any more, and its burst came back at its own pace from then on.
		first.SetLimitAt(a.last.Add(busyFor), rate.Limit(a.perSecond))
	}
	a.last = now
	a.mu.Unlock()
	first.SetLimitAt(now, rate.Limit(a.shared.share(a, first.TokensAt(now) < float64(first.Burst())/2, a.perSecond, now)))
	rested := true
	for _, l := range a.limiters {
		// Whoever waits may be woken late, so that a little is left although the cluster sends all the time.
		rested = rested && l.TokensAt(now) >= min(float64(l.Limit())*restedAfter.Seconds(), float64(l.Burst())/2)
		wait = max(wait, l.ReserveN(now, int(n)).DelayFrom(now))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if rested {
		a.late = time.Time{}
	}
	switch {
	case wait > 0 && a.late.IsZero():
		a.late = now
	case wait <= 0 || a.late.IsZero():
	case now.Sub(a.late) >= lateAfter && now.Sub(a.told) >= lateAfter:
		a.told, tell = now, true
	}
	return wait, tell
}

// pace bounds how fast the events of all watches of one connection are read, so that a cluster which repeats them
// without end, or sends bookmarks only, has a share of the processor and not all of it. Events are never dropped: what
// is not read has to wait in the API server, which ends watches that are too slow.
type pace struct {
	allowance *allowance
	clock     clock.Clock
	paused    prometheus.Counter
	// delayed, which may be nil, is called while the cluster sends more events than are read, once a minute.
	delayed func(error)
}

// ofWatch returns what bounded.Body.Pace takes, for one watch that ends with ctx.
func (p *pace) ofWatch(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	unpaid, most := int64(0), p.allowance.most()
	return func(stop <-chan struct{}, events, bytes int64) {
		unpaid += bytes
		events += unpaid / bytesPerEvent
		unpaid %= bytesPerEvent
		for events > 0 {
			n := min(events, most)
			events -= n
			wait, tell := p.allowance.take(n, p.clock.Now())
			if tell && p.delayed != nil {
				p.delayed(errEventsDelayed)
			}
			if !p.wait(ctx, stop, wait) {
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
