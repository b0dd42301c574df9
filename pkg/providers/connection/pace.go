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
	// bytesPerEvent is how many bytes of events, or of answers, count as one more.
	bytesPerEvent = 8 << 10

	// lateAfter is for how long events must have had to wait, without a pause of the cluster, before that is told. The
	// first list of a large cluster may take so long.
	lateAfter = time.Minute

	// restedAfter is for how long a cluster must have been silent to be late no more.
	restedAfter = 10 * time.Second
)

// errEventsDelayed says that a cluster sends more than is read.
var errEventsDelayed = errors.New("the cluster sends more than is read")

// An allowance is how many events, or answers, of one enrolled cluster may be read, by all of its connections, so that a
// cluster does not get more by closing them.
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
func newAllowance(p Pace, shared *sharedPace) *allowance {
	return &allowance{perSecond: float64(p.PerSecond), shared: shared, limiters: []*rate.Limiter{
		rate.NewLimiter(rate.Limit(p.PerSecond), p.Burst),
		rate.NewLimiter(rate.Limit(p.SustainedPerSecond), p.SustainedBurst),
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

// pace bounds how fast one connection is read, so that a cluster which repeats its events without end, sends bookmarks
// only, or answers with as much as is read, has a share of the processor and not all of it. Nothing is dropped: what is
// not read has to wait in the API server, which ends watches that are too slow.
//
// Events and answers are counted apart: a cluster whose watches have much to say is not late to be written to.
type pace struct {
	events, answers *allowance
	clock           clock.Clock
	paused          prometheus.Counter
	// delayed, which may be nil, is called while the cluster sends more than is read, once a minute.
	delayed func(error)
}

// ofWatch returns what bounded.Body.Pace takes, for one watch that ends with ctx.
func (p *pace) ofWatch(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	return p.of(ctx, p.events, 0)
}

// ofAnswer returns what bounded.Body.Pace takes, for one answer to a request that ends with ctx. It counts as one
// however small it is.
func (p *pace) ofAnswer(ctx context.Context) func(stop <-chan struct{}, texts, bytes int64) {
	wait := p.of(ctx, p.answers, bytesPerEvent)
	return func(stop <-chan struct{}, _, bytes int64) { wait(stop, 0, bytes) }
}

// of returns what waits for an allowance. unpaid is how many bytes are counted before the first is read.
func (p *pace) of(ctx context.Context, a *allowance, unpaid int64) func(stop <-chan struct{}, events, bytes int64) {
	most := a.most()
	return func(stop <-chan struct{}, events, bytes int64) {
		unpaid += bytes
		events += unpaid / bytesPerEvent
		unpaid %= bytesPerEvent
		for events > 0 {
			n := min(events, most)
			events -= n
			wait, tell := a.take(n, p.clock.Now())
			if tell && p.delayed != nil {
				p.delayed(errEventsDelayed)
			}
			if !p.wait(ctx, stop, wait) {
				return
			}
		}
	}
}

// wait is false if the watch, or the request, ended meanwhile.
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
