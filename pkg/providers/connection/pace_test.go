// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
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
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const bookmark = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}` + "\n"

// TestWatchesAreReadAtAPace has an API server that sends bookmarks without end to two watches of one connection. They
// were read as fast as they came.
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
	creds, err := credentials.Parse(kubeconfigFor(t, s.URL, caOf(s), "token"), credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTransport("a", creds, credentials.Options{AllowLoopback: true}, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	clk := clocktesting.NewFakeClock(time.Now())
	paused := prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}) //nolint:promlinter // A counter of the test.
	tr.pace = &pace{events: newAllowance(Pace{PerSecond: perSecond, Burst: burst}.or(DefaultEventPace()), nil), clock: clk, paused: paused}

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
	eventually(t, "both watches wait", waiting)
	for seconds := range int64(20) {
		most := int64(burst) + perSecond*seconds
		if got := events.Load(); got > most || got < most*8/10-2 {
			t.Errorf("after %d s want about %d events, got %d", seconds, most, got)
		}
		clk.Step(time.Second)
		eventually(t, "both watches wait again", waiting)
	}
	for _, b := range bodies {
		_ = b.Close()
	}
	for range bodies {
		<-ended // Whoever waits does not keep a watch that is over.
	}
	if testutil.ToFloat64(paused) == 0 {
		t.Error("want the metric to tell that watches were not read")
	}
}

// TestAnswersAreReadAtAPace has an API server whose answers are as long as is read. They were read as fast as they came,
// so that clusters which let much be listed had the processor to themselves.
func TestAnswersAreReadAtAPace(t *testing.T) {
	const size = 100 * bytesPerEvent
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ConfigMapList","items":[`+strings.Repeat(" ", size)+`]}`)
	}))
	s.StartTLS()
	defer s.Close()
	creds, err := credentials.Parse(kubeconfigFor(t, s.URL, caOf(s), "token"), credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := newTransport("a", creds, credentials.Options{AllowLoopback: true}, "test", func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	clk := clocktesting.NewFakeClock(time.Now())
	tr.pace = &pace{
		events:  newAllowance(DefaultEventPace(), nil),
		answers: newAllowance(Pace{PerSecond: 10, Burst: 50}.or(DefaultAnswerPace()), nil),
		clock:   clk, paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/configmaps", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.send(req, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatalf("A probe is never held up: %v.", err)
	}
	_ = resp.Body.Close()

	resp, err = tr.RoundTrip(req)
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
		eventually(t, "the answer waits", func() bool { return clk.Waiters() == 1 })
		if got, most := read.Load(), (50+10*seconds)*bytesPerEvent; got > most {
			t.Errorf("After %d s want at most %d bytes to be read, got %d.", seconds, most, got)
		}
		clk.Step(time.Second)
	}
	eventually(t, "the answer is read to its end", func() bool {
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
	p := &pace{
		events:  newAllowance(Pace{PerSecond: 1, Burst: 10}.or(DefaultEventPace()), nil),
		answers: newAllowance(Pace{PerSecond: 1, Burst: 10}.or(DefaultAnswerPace()), nil), clock: clk,
		paused: prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}),
	}
	limiter := p.events.limiters[0]
	wait := p.ofWatch(t.Context())
	stop := make(chan struct{})
	close(stop)
	wait(stop, 1, 8*bytesPerEvent)
	if got := limiter.TokensAt(clk.Now()); got != 1 {
		t.Errorf("want one of ten to be left after an event of 64 KiB, got %v", got)
	}
	wait(stop, 0, bytesPerEvent/2)
	if got := limiter.TokensAt(clk.Now()); got != 1 {
		t.Errorf("want what is less than 8 KiB to be counted later, got %v", got)
	}
	wait(stop, 0, bytesPerEvent/2)
	if got := limiter.TokensAt(clk.Now()); got != 0 {
		t.Errorf("want it to be counted, got %v left", got)
	}
	if got := p.answers.limiters[0].TokensAt(clk.Now()); got != 10 {
		t.Errorf("want events not to count as answers, got %v of ten left", got)
	}
	wait = p.ofAnswer(t.Context())
	wait(stop, 0, 100)
	wait(stop, 7, 2*bytesPerEvent)
	if got := p.answers.limiters[0].TokensAt(clk.Now()); got != 7 {
		t.Errorf("want an answer to count as one, and one more for each 8 KiB, got %v of ten left", got)
	}
}

// TestAllowance is about what a cluster may send in the long run, and when it is told that it sends more. Before, a
// cluster that sent as fast as it could was read at 2,000 events a second for ever, and no condition said so.
func TestAllowance(t *testing.T) {
	limits := Pace{PerSecond: 20, Burst: 100, SustainedPerSecond: 5, SustainedBurst: 400}
	a, now := newAllowance(limits, nil), time.Unix(1_000, 0)
	wokenLate := time.Duration(0)
	read := func(d time.Duration) (events int64, told int) {
		for end := now.Add(d); now.Before(end); {
			wait, tell := a.take(a.most()/10, now)
			if tell {
				told++
			}
			events += a.most() / 10
			if wait > 0 {
				now = now.Add(wait + wokenLate)
			}
		}
		return events, told
	}
	const step = 10 // Events are taken ten at a time.
	if events, told := read(10 * time.Second); events < 300-2*step || events > 300+2*step || told != 0 {
		t.Errorf("want the burst and 20 a second at first, got %d, told %d times", events, told)
	}
	// 100 of the long run's 400 and 50 that came back meanwhile are left.
	if events, told := read(50 * time.Second); events < 400-3*step || events > 400+3*step || told > 1 {
		t.Errorf("want 5 a second after 400, got %d, told %d times", events, told)
	}
	if events, told := read(10 * time.Minute); events < 3000-3*step || events > 3000+3*step || told < 9 || told > 11 {
		t.Errorf("want 5 a second for ever, told once a minute, got %d, told %d times", events, told)
	}
	wokenLate = 4 * time.Second
	if events, told := read(10 * time.Minute); events > 3000+3*step || told < 8 {
		t.Errorf("want it to be told on a busy machine, too, got %d, told %d times", events, told)
	}
	now = now.Add(time.Minute)
	if wait, tell := a.take(a.most(), now); wait > 0 || tell {
		t.Errorf("want who was silent for a minute to be read at once, got %s, told %t", wait, tell)
	}
}

// TestEventsAreReadLate is about the condition of a cluster that sends more events than are read.
func TestEventsAreReadLate(t *testing.T) {
	p := &Provider{
		o: Options{Clock: clocktesting.NewFakeClock(time.Now())}, metrics: newMetrics(nil),
		engaged: map[mcr.ClusterName]*connected{"a": nil}, refusals: map[mcr.ClusterName]datedRefusal{},
		published: map[mcr.ClusterName]Cluster{"a": {}},
	}
	p.eventsDelayed("a", errEventsDelayed)
	p.eventsDelayed("gone", errEventsDelayed)
	if got := p.published["a"].Refused.Reason; got != ReasonEventsDelayed {
		t.Errorf("want the cluster to be told of its events, got %q", got)
	}
	if n := testutil.CollectAndCount(p.metrics.refused); n > 0 || len(p.refusals) != 1 {
		t.Errorf("want no answer to be counted as refused, and nothing to be kept of a cluster that has gone, got %d, %v", n, p.refusals)
	}
}

// TestBusyClustersShareAPace has clusters that send without end, and one that sends a little. Before, each had 2,000
// events a second for itself, and later as much in the hundredth minute as in the first.
func TestBusyClustersShareAPace(t *testing.T) {
	limits := Pace{
		PerSecond: 200, Burst: 100, SustainedPerSecond: 200, SustainedBurst: 1_000_000, SharedPerSecond: 240, LeastPerSecond: 5,
	}
	for name, tc := range map[string]struct {
		reason string
		busy   int
		// want is how many events a second are read of each, and wantLater after two minutes without a pause.
		want, wantLater float64
	}{
		"One":      {reason: "One has what each may have for itself, and a fifth of what there is for all later.", busy: 1, want: 200, wantLater: 48},
		"Three":    {reason: "Three have a third of what there is for all.", busy: 3, want: 80, wantLater: 16},
		"Hundred":  {reason: "Of many, each has the least.", busy: 100, want: 5, wantLater: 1},
		"TwentyOf": {reason: "Twenty have a twentieth.", busy: 20, want: 12, wantLater: 2.4},
	} {
		t.Run(name, func(t *testing.T) {
			shared, start := newSharedPace(limits), time.Unix(1_000, 0)
			type sender struct {
				*allowance
				next         time.Time
				first, later int64
			}
			senders := make([]*sender, tc.busy)
			for i := range senders {
				senders[i] = &sender{allowance: newAllowance(limits, shared), next: start}
			}
			modest := newAllowance(limits, shared)
			const all = 220 // seconds
			for ms := 0; ms < all*1000; ms += 20 {
				now := start.Add(time.Duration(ms) * time.Millisecond)
				for _, s := range senders {
					for !s.next.After(now) {
						wait, _ := s.take(1, now)
						s.next = now.Add(wait)
						switch {
						case ms >= 20_000 && ms < 110_000:
							s.first++
						case ms >= 130_000:
							s.later++
						}
						if wait == 0 {
							s.next = now
						}
					}
				}
				if ms%1000 == 0 {
					if wait, _ := modest.take(1, now); wait > 0 {
						t.Fatalf("%s\nwho sends a little waits %s", tc.reason, wait)
					}
				}
			}
			for _, s := range senders {
				first, later := float64(s.first)/90, float64(s.later)/90
				if math.Abs(first-tc.want) > tc.want/10+0.5 || math.Abs(later-tc.wantLater) > tc.wantLater/10+0.5 {
					t.Fatalf("%s\nwant %v events a second of each, and %v later, got %v and %v", tc.reason, tc.want, tc.wantLater, first, later)
				}
			}
			// Who rests for a while has its burst again, however slowly it was read before.
			rested := start.Add(all * time.Second).Add(busyFor + 2*time.Second)
			if wait, _ := senders[0].take(1, rested); wait > 0 || senders[0].limiters[0].TokensAt(rested) < 90 {
				t.Errorf("want a cluster that has rested to have its burst again, got %v events", senders[0].limiters[0].TokensAt(rested))
			}
			later := start.Add(all * time.Second).Add(2 * busyFor)
			if got := shared.share(modest, false, 200, later); got != 200 || len(shared.busy) != 0 {
				t.Errorf("want nobody to be busy any more, got %d, and a share of %v", len(shared.busy), got)
			}
		})
	}
}
