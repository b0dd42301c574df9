// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

const bookmark = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}` + "\n"

// TestWatchesAreReadAtAPace has an API server that sends endless bookmarks to two watches of one connection. They used
// to be read as fast as they came.
func TestWatchesAreReadAtAPace(t *testing.T) {
	const perSecond, burst = 10, 100
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			if _, err := io.WriteString(w, bookmark); err != nil {
				return
			}
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	tr := transportTo(t, s)
	clk := clocktesting.NewFakeClock(time.Now())
	paused := prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}) //nolint:promlinter // A counter of the test.
	tr.owner.Pacing = &Pacing{
		Events:  NewRateLimiter(RateLimit{PerSecond: perSecond, Burst: burst}.Or(DefaultEventPace()), nil),
		Answers: NewRateLimiter(DefaultAnswerPace(), nil), Clock: clk, Paused: paused,
	}

	var events atomic.Int64
	var bodies []io.Closer
	ended := make(chan struct{}, 2)
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/configmaps?watch=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req) //nolint:bodyclose // It is closed at the end of the test.
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
		go func() {
			defer func() { ended <- struct{}{} }()
			p := make([]byte, len(bookmark))
			for {
				n, err := resp.Body.Read(p)
				events.Add(int64(strings.Count(string(p[:n]), "\n")))
				if err != nil {
					return
				}
			}
		}()
	}
	waiting := func() bool { return clk.Waiters() == 2 }
	connectiontest.Eventually(t, "both watches wait", waiting)
	for seconds := range int64(20) {
		most := int64(burst) + perSecond*seconds
		if got := events.Load(); got > most || got < most*8/10-2 {
			t.Errorf("after %d s want about %d events, got %d", seconds, most, got)
		}
		clk.Step(time.Second)
		connectiontest.Eventually(t, "both watches wait again", waiting)
	}
	for _, b := range bodies {
		_ = b.Close()
	}
	for range bodies {
		<-ended // A waiting reader does not keep an ended watch.
	}
	if testutil.ToFloat64(paused) == 0 {
		t.Error("want the metric to tell that watches were not read")
	}
}

// TestAnswersAreReadAtAPace has an API server whose answers are larger than the burst. Answers used to be read as fast
// as they came, so that clusters with long lists took the whole processor.
func TestAnswersAreReadAtAPace(t *testing.T) {
	const size = 100 * bytesPerEvent
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ConfigMapList","items":[`+strings.Repeat(" ", size)+`]}`)
	}))
	s.StartTLS()
	defer s.Close()
	tr := transportTo(t, s)
	clk := clocktesting.NewFakeClock(time.Now())
	tr.owner.Pacing = &Pacing{
		Events:  NewRateLimiter(DefaultEventPace(), nil),
		Answers: NewRateLimiter(RateLimit{PerSecond: 10, Burst: 50}.Or(DefaultAnswerPace()), nil),
		Clock:   clk, Paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/configmaps", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.Ask(req, "") //nolint:bodyclose // It is closed below.
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatalf("A probe is never held up: %v.", err)
	}
	_ = resp.Body.Close()

	resp, err = tr.RoundTrip(req) //nolint:bodyclose // By the goroutine that reads it.
	if err != nil {
		t.Fatal(err)
	}
	var read atomic.Int64
	ended := make(chan error, 1)
	go func() {
		defer func() { _ = resp.Body.Close() }()
		p := make([]byte, bytesPerEvent)
		for {
			n, err := resp.Body.Read(p)
			read.Add(int64(n))
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	for seconds := range int64(5) {
		connectiontest.Eventually(t, "the answer waits", func() bool { return clk.Waiters() == 1 })
		if got, most := read.Load(), (50+10*seconds)*bytesPerEvent; got > most {
			t.Errorf("After %d s want at most %d bytes to be read, got %d.", seconds, most, got)
		}
		clk.Step(time.Second)
	}
	connectiontest.Eventually(t, "the answer is read to its end", func() bool {
		select {
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				t.Errorf("An answer that is read slowly is not refused. Got %v.", err)
			}
			return true
		default:
			clk.Step(time.Second)
			return false
		}
	})
}

// TestPaceCountsBytes is about events that are large: they cost more to decode than many small ones.
func TestPaceCountsBytes(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	p := &Pacing{
		Events:  NewRateLimiter(RateLimit{PerSecond: 1, Burst: 10}.Or(DefaultEventPace()), nil),
		Answers: NewRateLimiter(RateLimit{PerSecond: 1, Burst: 10}.Or(DefaultAnswerPace()), nil), Clock: clk,
		Paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
	}
	limiter := p.Events.limiters[0]
	wait := p.ofWatch(t.Context())
	stop := make(chan struct{})
	close(stop)
	wait(stop, 1, 8*bytesPerEvent)
	if got := limiter.TokensAt(clk.Now()); got != 1 {
		t.Errorf("want one of ten to be left after an event of 64 KiB, got %v", got)
	}
	wait(stop, 0, bytesPerEvent/2)
	if got := limiter.TokensAt(clk.Now()); got != 1 {
		t.Errorf("want what is less than 32 KiB to be counted later, got %v", got)
	}
	wait(stop, 0, bytesPerEvent/2)
	if got := limiter.TokensAt(clk.Now()); got != 0 {
		t.Errorf("want it to be counted, got %v left", got)
	}
	if got := p.Answers.limiters[0].TokensAt(clk.Now()); got != 10 {
		t.Errorf("want events not to count as answers, got %v of ten left", got)
	}
	wait = p.ofList(t.Context())
	wait(stop, 7, bytesPerEvent)
	wait(stop, 0, bytesPerEvent)
	if got := p.Answers.limiters[0].TokensAt(clk.Now()); got != 7 {
		t.Errorf("want a list to count as one, and one more for each 32 KiB, got %v of ten left", got)
	}
}

// TestAnswersAboutOneObjectDoNotWait is about requests of workers, which have a time limit: if the answer to a write is
// not read, the object appears not to have been written.
func TestAnswersAboutOneObjectDoNotWait(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	p := &Pacing{
		Answers: NewRateLimiter(RateLimit{PerSecond: 1, Burst: 10}.Or(DefaultAnswerPace()), nil), Clock: clk,
		Paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
	}
	for range 100 {
		p.ofAnswer(t.Context())
	}
	wait := p.ofAnswer(t.Context())
	wait(nil, 0, freeOfAnswer-1) // If this waited, the test would hang.
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		wait(stop, 0, 10*bytesPerEvent)
	}()
	connectiontest.Eventually(t, "what is over 64 KiB waits", clk.HasWaiters)
	before := p.Answers.limiters[0].TokensAt(clk.Now())
	close(stop)
	<-done
	if after := p.Answers.limiters[0].TokensAt(clk.Now()); after <= before {
		t.Errorf("want what is not read to be given back, got %v before and %v after", before, after)
	}
}

// TestAllowance is about what a cluster may send in the long run, and when it is reported that it sends more. Before, a
// cluster that sent as fast as it could was read at 2,000 events a second for ever, and no condition reported it.
func TestAllowance(t *testing.T) {
	limits := RateLimit{PerSecond: 20, Burst: 100, SustainedPerSecond: 5, SustainedBurst: 400}
	a, now := NewRateLimiter(limits, nil), time.Unix(1_000, 0)
	wokenLate := time.Duration(0)
	read := func(d time.Duration) (events int64, reported int) {
		for end := now.Add(d); now.Before(end); {
			took := a.take(a.most()/10, now)
			if took.tell {
				reported++
			}
			events += a.most() / 10
			if took.wait > 0 {
				now = now.Add(took.wait + wokenLate)
			}
		}
		return events, reported
	}
	const step = 10 // Events are taken ten at a time.
	if events, reported := read(10 * time.Second); events < 300-2*step || events > 300+2*step || reported != 0 {
		t.Errorf("want the burst and 20 a second at first, got %d, reported %d times", events, reported)
	}
	// 100 of the 400 for the long run, and 50 that were regained meanwhile, are left.
	if events, reported := read(50 * time.Second); events < 400-3*step || events > 400+3*step || reported > 1 {
		t.Errorf("want 5 a second after 400, got %d, reported %d times", events, reported)
	}
	if events, reported := read(10 * time.Minute); events < 3000-3*step || events > 3000+3*step || reported < 9 || reported > 11 {
		t.Errorf("want 5 a second for ever, reported once a minute, got %d, reported %d times", events, reported)
	}
	wokenLate = 4 * time.Second
	if events, reported := read(10 * time.Minute); events > 3000+3*step || reported < 8 {
		t.Errorf("want it to be reported on a busy machine, too, got %d, reported %d times", events, reported)
	}
	now = now.Add(time.Minute)
	took := a.take(a.most(), now)
	if took.wait > 0 || took.tell {
		t.Errorf("want a connection that was silent for a minute to be read at once, got %s, reported %t", took.wait, took.tell)
	}
	took.giveBack(now)
	if again := a.take(a.most(), now); again.wait > 0 {
		t.Errorf("want what was not read to be given back, got a wait of %s", again.wait)
	}
}

// TestLoad is about which clusters are busy. Before, a cluster that sent just as much as it may, or that paused until
// its burst had come back, was never busy, and many of them took the whole processor.
func TestLoad(t *testing.T) {
	p := RateLimit{Burst: 5_000, BusyPerSecond: 100}
	for name, tc := range map[string]struct {
		reason string
		// sent is what the cluster sends in each second.
		sent func(second int) int64
		// busy reports whether it is busy for most of the last minute.
		busy bool
	}{
		"Nothing":      {reason: "Who sends nothing is not busy.", sent: func(int) int64 { return 0 }},
		"Least":        {reason: "Who sends what each may send is not busy.", sent: func(int) int64 { return 100 }},
		"First list":   {reason: "Who has sent a list and rests is not busy.", sent: func(s int) int64 { return map[int]int64{0: 50_000}[s] }},
		"Steady":       {reason: "Who sends as much as is read in the long run is busy.", sent: func(int) int64 { return 499 }, busy: true},
		"In bursts":    {reason: "Who rests until its burst has come back is busy when it sends.", sent: func(s int) int64 { return []int64{5_000, 0, 0, 0, 0}[s%5] }, busy: true},
		"Without rest": {reason: "Who sends all the time is busy.", sent: func(int) int64 { return 2_000 }, busy: true},
	} {
		t.Run(name, func(t *testing.T) {
			l, busy := newLoad(p), 0
			for s := range 240 {
				now := time.Unix(int64(1_000+s), 0)
				if l.add(tc.sent(s), now) && s >= 180 {
					busy++
				}
			}
			if got := busy > 30; got != tc.busy {
				t.Errorf("%s It is busy in %d of 60 seconds.", tc.reason, busy)
			}
		})
	}
}

// TestBusyClustersShareAPace has clusters that send endlessly, and one that sends a little. Before, each had 2,000
// events a second for itself.
func TestBusyClustersShareAPace(t *testing.T) {
	limits := RateLimit{
		PerSecond: 200, Burst: 100, SustainedPerSecond: 200, SustainedBurst: 1_000_000,
		BusyPerSecond: 5, SharedPerSecond: 240, LeastPerSecond: 5,
	}
	for name, tc := range map[string]struct {
		reason string
		busy   int
		// want is how many events a second are read from each.
		want float64
	}{
		"One":      {reason: "One has what each may have for itself.", busy: 1, want: 200},
		"Three":    {reason: "Three have a third of what there is for all.", busy: 3, want: 80},
		"Hundred":  {reason: "Of many, each has the least.", busy: 100, want: 5},
		"TwentyOf": {reason: "Twenty have a twentieth.", busy: 20, want: 12},
	} {
		t.Run(name, func(t *testing.T) {
			shared, start := NewShared(limits), time.Unix(1_000, 0)
			type sender struct {
				*RateLimiter
				next   time.Time
				events int64
			}
			senders := make([]*sender, tc.busy)
			for i := range senders {
				senders[i] = &sender{RateLimiter: NewRateLimiter(limits, shared), next: start}
			}
			modest := NewRateLimiter(limits, shared)
			const warm, measured = 100, 100
			for ms := 0; ms < (warm+measured)*1000; ms += 20 {
				now := start.Add(time.Duration(ms) * time.Millisecond)
				for _, s := range senders {
					for !s.next.After(now) {
						wait := s.take(1, now).wait
						s.next = now.Add(wait)
						if ms >= warm*1000 {
							s.events++
						}
						if wait == 0 {
							s.next = now
						}
					}
				}
				if ms%1000 == 0 {
					if took := modest.take(1, now); took.wait > 0 {
						t.Fatalf("%s\nwho sends a little waits %s", tc.reason, took.wait)
					}
				}
			}
			for _, s := range senders {
				if got := float64(s.events) / measured; math.Abs(got-tc.want) > tc.want/10+0.5 {
					t.Fatalf("%s\nwant %v events a second of each, got %v", tc.reason, tc.want, got)
				}
			}
			// A resting cluster regains its burst, however slowly it was read before.
			rested := start.Add((warm + measured + 30) * time.Second)
			if took := senders[0].take(1, rested); took.wait > 0 || senders[0].limiters[0].TokensAt(rested) < 90 {
				t.Errorf("want a cluster that has rested to have its burst again, got %v events", senders[0].limiters[0].TokensAt(rested))
			}
			later := rested.Add(2 * busyFor)
			if got := shared.share(modest, false, 200, later); got != 200 || len(shared.busy) != 0 {
				t.Errorf("want no cluster to be busy any more, got %d, and a share of %v", len(shared.busy), got)
			}
		})
	}
}

// TestClusterThatIsReadSlowlyStaysBusy is about clusters that send endlessly and are read slowly because of it. Before,
// they no longer counted as busy by the time that the next event was read, and were read at full speed again: in the
// end, each of many had 100 events a second, and not its share.
func TestClusterThatIsReadSlowlyStaysBusy(t *testing.T) {
	limits := RateLimit{
		PerSecond: 2_000, Burst: 1_000, SustainedPerSecond: 500, SustainedBurst: 100_000,
		BusyPerSecond: 100, SharedPerSecond: 100, LeastPerSecond: 5,
	}
	shared, start := NewShared(limits), time.Unix(1_000, 0)
	senders := make([]*RateLimiter, 20)
	next := make([]time.Time, len(senders))
	for i := range senders {
		senders[i], next[i] = NewRateLimiter(limits, shared), start
	}
	const warm, measured = 300, 300
	events := 0
	for s := range (warm + measured) * 10 {
		now := start.Add(time.Duration(s) * 100 * time.Millisecond)
		for i, a := range senders {
			for !next[i].After(now) {
				if next[i].Before(now.Add(-100 * time.Millisecond)) {
					next[i] = now
				}
				next[i] = next[i].Add(a.take(1, now).wait)
				if s >= warm*10 {
					events++
				}
			}
		}
	}
	if got := float64(events) / measured; got > 110 {
		t.Errorf("want 100 events a second of all of them, got %v", got)
	}
}

// TestObjectsOfAStreamCountLess is about large clusters: a listed object costs a small part of a handled one.
func TestObjectsOfAStreamCountLess(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	p := &Pacing{
		Events: NewRateLimiter(RateLimit{PerSecond: 1, Burst: 50_000}.Or(DefaultEventPace()), nil), Clock: clk,
		Paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
	}
	stop := make(chan struct{})
	close(stop)
	taken := func() float64 { return 50_000 - p.Events.limiters[0].TokensAt(clk.Now()) }
	for name, tc := range map[string]struct {
		reason, query string
		want          float64
	}{
		"Stream": {reason: "Sixty-four objects of a list count as one event.", query: "watch=true&sendInitialEvents=true", want: 10},
		"Watch":  {reason: "What is handled counts as a whole one.", query: "watch=true", want: 640},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://server/api/v1/secrets?"+tc.query, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := taken()
		p.ofBody(req, "")(stop, 640, 0)
		if got := taken() - before; got != tc.want {
			t.Errorf("%s: %s want %v, got %v", name, tc.reason, tc.want, got)
		}
	}
	wait, before := p.ofStream(t.Context()), taken()
	wait(stop, mostListed+500, 0)
	if got, want := taken()-before, float64(mostListed/64+500); got != want {
		t.Errorf("Who sends more objects than anybody keeps sends no list. Want %v, got %v.", want, got)
	}
}

// TestPagesAndTextsAreReadAtAPace is about answers with nothing in them. Before, empty pages that name another page
// were requested as fast as they came, and so were lists that are answered with a text.
func TestPagesAndTextsAreReadAtAPace(t *testing.T) {
	for name, body := range map[string]struct{ contentType, body string }{
		"EmptyPages": {contentType: "application/json", body: `{"kind":"List","apiVersion":"v1","metadata":{"continue":"more"},"items":[]}`},
		"Texts":      {contentType: "text/plain", body: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", body.contentType)
				_, _ = io.WriteString(w, body.body)
			}))
			defer s.Close()
			tr := transportTo(t, s)
			clk := clocktesting.NewFakeClock(time.Now())
			tr.owner.Pacing = &Pacing{
				Events:  NewRateLimiter(DefaultEventPace(), nil),
				Answers: NewRateLimiter(RateLimit{PerSecond: 1, Burst: 10}.Or(DefaultAnswerPace()), nil),
				Clock:   clk, Paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
			}
			ctx, cancel := context.WithCancel(t.Context())
			var answers atomic.Int64
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/secrets", nil)
					if err != nil {
						return
					}
					resp, err := tr.RoundTrip(req)
					if err != nil {
						return
					}
					_, err = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if err != nil {
						return
					}
					answers.Add(1)
				}
			}()
			connectiontest.Eventually(t, "the eleventh answer waits", clk.HasWaiters)
			if got := answers.Load(); got != 10 {
				t.Errorf("want ten answers at once, got %d", got)
			}
			cancel()
			<-ended
		})
	}
}
