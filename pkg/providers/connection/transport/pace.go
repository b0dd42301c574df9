// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

const (
	// bytesPerEvent is how many bytes of events, or of responses, count as one more: scanning and decoding them takes less
	// processor time than handling an event, which is mostly a request or two.
	bytesPerEvent = 32 << 10

	// bytesPerListed is how many bytes an object of a streaming list counts as, instead of a whole event: it is not
	// handled before the list is complete, and most objects are not needed. mostListed objects of one stream count like
	// this, as many as an accepted list may have.
	bytesPerListed, mostListed = 512, kindwatch.DefaultListed

	// lateAfter is how long events must be delayed, without a pause of the cluster, before this is reported. The first
	// list of a large cluster may take that long.
	lateAfter = time.Minute

	// restedAfter is how long a cluster must be silent to no longer be late.
	restedAfter = 10 * time.Second
)

// ErrEventsDelayed means that a cluster sends more than its pace.
var ErrEventsDelayed = errors.New("the cluster sends more than is read")

// A RateLimiter limits the events, or responses, read from one enrolled cluster, across its connections, so that
// closing connections does not increase it.
type RateLimiter struct {
	limiters []*rate.Limiter
	// perSecond is the limit of the first limiter while no other cluster shares it.
	perSecond float64
	shared    *Shared

	mu sync.Mutex
	// load decides whether the cluster is busy.
	load load
	// late is since when events have been delayed without a pause of the cluster, zero if they are not; reported is when
	// this was last reported.
	late, reported time.Time
}

// NewRateLimiter returns the limit of one cluster. shared is nil if the cluster has no others to share with.
func NewRateLimiter(p RateLimit, shared *Shared) *RateLimiter {
	return &RateLimiter{
		perSecond: float64(p.PerSecond), shared: shared, load: newLoad(p), limiters: []*rate.Limiter{
			rate.NewLimiter(rate.Limit(p.PerSecond), p.Burst),
			rate.NewLimiter(rate.Limit(p.SustainedPerSecond), p.SustainedBurst),
		},
	}
}

// most returns how many events can be taken at once.
func (a *RateLimiter) most() int64 {
	n := a.limiters[0].Burst()
	for _, l := range a.limiters[1:] {
		n = min(n, l.Burst())
	}
	return int64(n)
}

// taken is the result of RateLimiter.take.
type taken struct {
	// wait is how long the events have to wait.
	wait time.Duration
	// tell means that it is time to report that the cluster sends too many.
	tell         bool
	reservations []*rate.Reservation
}

// giveBack returns events that are not read after all, unless later events already wait.
func (t taken) giveBack(now time.Time) {
	for _, r := range t.reservations {
		r.CancelAt(now)
	}
}

// take takes n events, no more than most.
func (a *RateLimiter) take(n int64, now time.Time) taken {
	first := a.limiters[0]
	a.mu.Lock()
	busy := a.load.add(n, now)
	a.mu.Unlock()
	first.SetLimitAt(now, rate.Limit(a.shared.share(a, busy, a.perSecond, now)))
	rested := true
	var t taken
	for _, l := range a.limiters {
		// A waiting reader may wake up late, so a few tokens can be left although the cluster sends continuously.
		rested = rested && l.TokensAt(now) >= min(float64(l.Limit())*restedAfter.Seconds(), float64(l.Burst())/2)
		r := l.ReserveN(now, int(n))
		t.wait, t.reservations = max(t.wait, r.DelayFrom(now)), append(t.reservations, r)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.load.wait(now.Add(t.wait))
	if rested {
		a.late = time.Time{}
	}
	switch {
	case t.wait > 0 && a.late.IsZero():
		a.late = now
	case t.wait <= 0 || a.late.IsZero():
	case now.Sub(a.late) >= lateAfter && now.Sub(a.reported) >= lateAfter:
		a.reported, t.tell = now, true
	}
	return t
}

// Pacing bounds how fast one connection is read, so that a cluster that repeats its events endlessly, sends only
// bookmarks, or always sends the maximum, gets only a share of the processor. Nothing is dropped: unread data waits in
// the API server, which ends watches that are too slow.
//
// Events and responses are counted separately: busy watches of a cluster do not delay writes to it.
type Pacing struct {
	// Events and Answers are the cluster's limits, shared by its connections.
	Events, Answers *RateLimiter
	Clock           clock.Clock
	// Paused counts the seconds of paused reading.
	Paused prometheus.Counter
	// Delayed is called once a minute while the cluster sends more than its pace. It may be nil.
	Delayed func(error)
}

// freeOfAnswer is how many bytes of a response about one object are read without waiting, though they count. Workers
// wait for the responses to their writes.
const freeOfAnswer = 64 << 10

// ofWatch returns the argument of limits.Body.Pace for one watch that ends with ctx.
func (p *Pacing) ofWatch(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	return p.of(ctx, p.Events)
}

// ofStream returns the argument of limits.Body.Pace for one watch that begins with a list.
func (p *Pacing) ofStream(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	wait, left := p.of(ctx, p.Events), int64(mostListed)
	return func(stop <-chan struct{}, events, bytes int64) {
		listed := min(left, events)
		left -= listed
		wait(stop, events-listed, bytes+listed*bytesPerListed)
	}
}

// ofList returns the argument of limits.Body.Pace for one list, or a page of one. It counts as one response, which
// waits before it is decoded, so that empty pages cannot arrive without limit.
func (p *Pacing) ofList(ctx context.Context) func(stop <-chan struct{}, texts, bytes int64) {
	wait, answers := p.of(ctx, p.Answers), int64(1)
	return func(stop <-chan struct{}, _, bytes int64) {
		wait(stop, answers, bytes)
		answers = 0
	}
}

// ofAnswer returns the argument of limits.Body.Pace for a response that is neither. The response is counted when this
// returns, however small it is.
func (p *Pacing) ofAnswer(ctx context.Context) func(stop <-chan struct{}, texts, bytes int64) {
	p.Answers.take(1, p.Clock.Now())
	wait, free := p.of(ctx, p.Answers), int64(freeOfAnswer)
	return func(stop <-chan struct{}, _, bytes int64) {
		now := min(free, bytes)
		free -= now
		if now > 0 {
			p.Answers.take(max(1, now/bytesPerEvent), p.Clock.Now())
		}
		if bytes > now {
			wait(stop, 0, bytes-now)
		}
	}
}

// ofBody returns the argument of limits.Body.Pace for the response to a request. pathPrefix is the path of the API
// server's address.
func (p *Pacing) ofBody(req *http.Request, pathPrefix string) func(stop <-chan struct{}, texts, bytes int64) {
	switch {
	case isStream(req):
		return p.ofStream(req.Context())
	case isWatch(req):
		return p.ofWatch(req.Context())
	case isList(req, pathPrefix):
		return p.ofList(req.Context())
	}
	return p.ofAnswer(req.Context())
}

// of returns a function that waits for a limiter.
func (p *Pacing) of(ctx context.Context, a *RateLimiter) func(stop <-chan struct{}, events, bytes int64) {
	unpaid, most := int64(0), a.most()
	return func(stop <-chan struct{}, events, bytes int64) {
		unpaid += bytes
		events += unpaid / bytesPerEvent
		unpaid %= bytesPerEvent
		for events > 0 {
			n := min(events, most)
			events -= n
			t := a.take(n, p.Clock.Now())
			if t.tell && p.Delayed != nil {
				p.Delayed(ErrEventsDelayed)
			}
			if !p.wait(ctx, stop, t.wait) {
				t.giveBack(p.Clock.Now())
				return
			}
		}
	}
}

// wait returns false if the watch or the request ended first.
func (p *Pacing) wait(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	began := p.Clock.Now()
	defer func() { p.Paused.Add(p.Clock.Since(began).Seconds()) }()
	timer := p.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-stop:
	case <-ctx.Done():
	}
	return false
}
