// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const bookmark = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"1"}}}` + "\n"

// TestWatchesAreReadAtAPace has an API server that sends bookmarks without end to two watches of one connection. They were read as fast
// as they came.
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
	tr.pace = newPace(Limits{EventsPerSecond: perSecond, EventBurst: burst}, clk, paused)

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

// TestPaceCountsBytes is about events that are large: they cost more to decode than many small ones.
func TestPaceCountsBytes(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Now())
	p := newPace(Limits{EventsPerSecond: 1, EventBurst: 10}, clk, prometheus.NewCounter(prometheus.CounterOpts{Name: "paused"}))
	wait := p.ofWatch(t.Context())
	stop := make(chan struct{})
	close(stop)
	wait(stop, 1, 8*bytesPerEvent)
	if got := p.limiter.TokensAt(clk.Now()); got != 1 {
		t.Errorf("want one of ten to be left after an event of 64 KiB, got %v", got)
	}
	wait(stop, 0, bytesPerEvent/2)
	if got := p.limiter.TokensAt(clk.Now()); got != 1 {
		t.Errorf("want what is less than 8 KiB to be counted later, got %v", got)
	}
	wait(stop, 0, bytesPerEvent/2)
	if got := p.limiter.TokensAt(clk.Now()); got != 0 {
		t.Errorf("want it to be counted, got %v left", got)
	}
}
