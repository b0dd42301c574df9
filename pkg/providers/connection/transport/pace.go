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
	// bytesPerEvent is how many bytes of events, or of answers, count as one more: to scan and decode them costs less
	// processor time than to handle an event, which is mostly a request or two.
	bytesPerEvent = 32 << 10

	// bytesPerListed is how many bytes an object of a list that is a stream counts as, in place of a whole event: nobody
	// handles it before the list is complete, and most are of no interest to anybody. So many objects of one stream count
	// like that as a list may bring: whoever sends more sends no list that anybody takes.
	bytesPerListed, mostListed = 512, kindwatch.DefaultListed

	// lateAfter is for how long events must have had to wait, without a pause of the cluster, before that is told. The
	// first list of a large cluster may take so long.
	lateAfter = time.Minute

	// restedAfter is for how long a cluster must have been silent to be late no more.
	restedAfter = 10 * time.Second
)

// ErrEventsDelayed says that a cluster sends more than is read.
var ErrEventsDelayed = errors.New("the cluster sends more than is read")

// An Allowance is how many events, or answers, of one enrolled cluster may be read, by all of its connections, so that
// a cluster does not get more by closing them.
type Allowance struct {
	limiters []*rate.Limiter
	// perSecond is the limit of the first limiter while the cluster has no others to share with.
	perSecond float64
	shared    *Shared

	mu sync.Mutex
	// load says whether the cluster is busy.
	load load
	// late is since when events have had to wait without a pause of the cluster, zero if they do not, and told when that
	// was last told.
	late, told time.Time
}

// NewAllowance returns the allowance of one cluster. shared is nil if it has no others to share with.
func NewAllowance(p Pace, shared *Shared) *Allowance {
	return &Allowance{
		perSecond: float64(p.PerSecond), shared: shared, load: newLoad(p), limiters: []*rate.Limiter{
			rate.NewLimiter(rate.Limit(p.PerSecond), p.Burst),
			rate.NewLimiter(rate.Limit(p.SustainedPerSecond), p.SustainedBurst),
		},
	}
}

// most is how many events can be taken at once.
func (a *Allowance) most() int64 {
	n := a.limiters[0].Burst()
	for _, l := range a.limiters[1:] {
		n = min(n, l.Burst())
	}
	return int64(n)
}

// taken are events that were taken of an allowance.
type taken struct {
	// wait is for how long they have to wait.
	wait time.Duration
	// tell is whether it is time to tell that the cluster sends too many.
	tell         bool
	reservations []*rate.Reservation
}

// giveBack is for events that are not read after all, as far as nobody else waits for their turn already.
func (t taken) giveBack(now time.Time) {
	for _, r := range t.reservations {
		r.CancelAt(now)
	}
}

// take takes n events, no more than most.
func (a *Allowance) take(n int64, now time.Time) taken {
	first := a.limiters[0]
	a.mu.Lock()
	busy := a.load.add(n, now)
	a.mu.Unlock()
	first.SetLimitAt(now, rate.Limit(a.shared.share(a, busy, a.perSecond, now)))
	rested := true
	var t taken
	for _, l := range a.limiters {
		// Whoever waits may be woken late, so that a little is left although the cluster sends all the time.
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
	case now.Sub(a.late) >= lateAfter && now.Sub(a.told) >= lateAfter:
		a.told, t.tell = now, true
	}
	return t
}

// Pacing bounds how fast one connection is read, so that a cluster which repeats its events without end, sends
// bookmarks only, or answers with as much as is read, has a share of the processor and not all of it. Nothing is
// dropped: what is not read has to wait in the API server, which ends watches that are too slow.
//
// Events and answers are counted apart: a cluster whose watches have much to say is not late to be written to.
type Pacing struct {
	// Events and Answers are what may be read of the cluster, by all of its connections.
	Events, Answers *Allowance
	Clock           clock.Clock
	// Paused counts the seconds for which something was not read.
	Paused prometheus.Counter
	// Delayed, which may be nil, is called while the cluster sends more than is read, once a minute.
	Delayed func(error)
}

// freeOfAnswer is how many bytes of an answer about one object are read without waiting. They count. An object is
// written by a worker, for which a write is either answered or not.
const freeOfAnswer = 64 << 10

// ofWatch returns what bounded.Body.Pace takes, for one watch that ends with ctx.
func (p *Pacing) ofWatch(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	return p.of(ctx, p.Events)
}

// ofStream returns what bounded.Body.Pace takes, for one watch that begins with a list.
func (p *Pacing) ofStream(ctx context.Context) func(stop <-chan struct{}, events, bytes int64) {
	wait, left := p.of(ctx, p.Events), int64(mostListed)
	return func(stop <-chan struct{}, events, bytes int64) {
		listed := min(left, events)
		left -= listed
		wait(stop, events-listed, bytes+listed*bytesPerListed)
	}
}

// ofList returns what bounded.Body.Pace takes, for one list, or a page of one. It counts as one answer, which waits
// before anything of it is decoded, so that pages with nothing in them cannot come without end.
func (p *Pacing) ofList(ctx context.Context) func(stop <-chan struct{}, texts, bytes int64) {
	wait, answers := p.of(ctx, p.Answers), int64(1)
	return func(stop <-chan struct{}, _, bytes int64) {
		wait(stop, answers, bytes)
		answers = 0
	}
}

// ofAnswer returns what bounded.Body.Pace takes, for an answer that is neither. It has been counted when this returns,
// however small it is.
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

// ofBody is what bounded.Body.Pace takes for the answer to a request. pathPrefix is the path of the API server's
// address.
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

// of returns what waits for an allowance.
func (p *Pacing) of(ctx context.Context, a *Allowance) func(stop <-chan struct{}, events, bytes int64) {
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

// wait is false if the watch, or the request, ended meanwhile.
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
