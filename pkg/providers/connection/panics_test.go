// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
)

// TestPanicWhileLeavingDisengagesTheCluster has an OffboardFunc that panics.
func TestPanicWhileLeavingDisengagesTheCluster(t *testing.T) {
	src := newFakeSource()
	h := newHarnessWith(t, src, func(p *Provider) {
		p.OnOffboard(func(context.Context, mcr.ClusterName) error { panic("of a test") })
	})
	src.set("a", listServer(t, 20, func(w io.Writer, r *http.Request) { honestPage(w, r, 1, 1) }))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	src.remove("a")
	connectiontest.Eventually(t, "the cluster is gone", func() bool { _, there := h.Lookup(clusterName("a")); return !there })
}

// TestPanicAfterLeavingBringsNoSeriesBack causes a panic in a connection whose cluster is already gone.
func TestPanicAfterLeavingBringsNoSeriesBack(t *testing.T) {
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", listServer(t, 22, func(w io.Writer, r *http.Request) { honestPage(w, r, 1, 1) }))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	r := h.records.get(NewKey("fake", nn("a")))
	late := h.panics.guard(t.Context(), r, func() bool { return true })
	if err := late.Do("before", func() { panic("of a test") }); err == nil {
		t.Fatal("want the panic returned")
	}
	if got := testutil.CollectAndCount(h.metrics.panics); got != 1 {
		t.Fatalf("want a series of a cluster that is enrolled, got %d", got)
	}
	src.remove("a")
	connectiontest.Eventually(t, "the cluster is gone", func() bool { _, there := h.Lookup(clusterName("a")); return !there })
	connectiontest.Eventually(t, "its series is gone", func() bool { return testutil.CollectAndCount(h.metrics.panics) == 0 })
	if err := late.Do("after", func() { panic("of a test") }); err == nil {
		t.Fatal("want the panic returned")
	}
	if got := testutil.CollectAndCount(h.metrics.panics); got != 0 {
		t.Errorf("want no series of a cluster that is gone, got %d", got)
	}
}

// TestPanicOfAHandlerCostsTheKind has a handler that panics at first. Its Watcher has no guard of a connection.
func TestPanicOfAHandlerCostsTheKind(t *testing.T) {
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", listServer(t, 21, func(w io.Writer, r *http.Request) { honestPage(w, r, 3, 1) }))
	h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := multicluster.WatchOptions(cl)
	if err != nil {
		t.Fatal(err)
	}
	var seen atomic.Int64
	o.Handler = func(e kindwatch.Event) {
		if e.Type == kindwatch.Added && seen.Add(1) == 1 {
			panic("of a test")
		}
	}
	o.Guard = nil
	o.MinBackoff, o.MaxBackoff = 10*time.Millisecond, 20*time.Millisecond
	w, err := kindwatch.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Start(ctx) }()
	t.Cleanup(func() { end(); <-ended })
	w.Set("test", configMaps(false))
	connectiontest.Eventually(t, "the kind is listed again, and every object is reported", func() bool { return is(w, configMaps(false), kindwatch.StateSynced)() && seen.Load() == 4 })
}

// trap panics once after it was set for a place.
type trap struct{ place atomic.Value }

func (b *trap) set(place string) { b.place.Store(place) }

func (b *trap) step(place string) {
	if b.place.CompareAndSwap(place, "") {
		panic("of a test in " + place)
	}
}

// Places of the trap.
const (
	inKubeconfig = "Kubeconfig"
	inEngage     = "Engage"
	inSync       = "WaitForSync"
	inSubscriber = "Subscriber"
	inHandler    = "Handler"
	inReconcile  = "Reconcile"
)

type trappedSource struct {
	*fakeSource
	*trap
}

func (s trappedSource) Kubeconfig(ctx context.Context, e *Enrolment) (Kubeconfig, error) {
	if e.Object.Name != "neighbour" {
		s.step(inKubeconfig)
	}
	return s.fakeSource.Kubeconfig(ctx, e)
}

type trappedGate struct {
	Gate
	*trap
}

func (g trappedGate) WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	g.step(inSync)
	return g.Gate.WaitForSync(ctx, name, cl)
}

type trappedAware struct {
	mcr.Aware
	*trap
}

func (a trappedAware) Engage(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	a.step(inEngage)
	return a.Aware.Engage(ctx, name, cl)
}

// TestPanicCostsTheClusterItsConnection makes each part that handles a cluster panic, once. The test would not come to
// its end if the process died.
func TestPanicCostsTheClusterItsConnection(t *testing.T) { //nolint:tparallel // Only some of its cases run in parallel.
	const uid = 31
	honest := func(w io.Writer, r *http.Request) { honestPage(w, r, 1, 1) }
	watch := func(t *testing.T, h *harness, trap *trap, kind kindwatch.Kind) { //nolint:thelper // It is the case itself.
		cl, err := h.Get(t.Context(), clusterName("a"))
		if err != nil {
			t.Fatal(err)
		}
		o, err := multicluster.WatchOptions(cl)
		if err != nil {
			t.Fatal(err)
		}
		o.Handler = func(kindwatch.Event) { trap.step(inHandler) }
		w, err := kindwatch.New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = w.Start(ctx) }()
		t.Cleanup(func() { end(); <-ended })
		w.Set("test", kind)
	}
	cases := map[string]struct {
		reason, place string
		before        bool
		do            func(t *testing.T, h *harness, trap *trap)
	}{
		"FirstAttempt": {reason: "An attempt to connect that panics has failed.", place: inKubeconfig, before: true},
		"Engage":       {reason: "So has one with which a controller cannot be engaged.", place: inEngage, before: true},
		"Handler": {reason: "A handler of a watch panics.", place: inHandler, do: func(t *testing.T, h *harness, trap *trap) { //nolint:thelper // It is the case itself.
			watch(t, h, trap, configMaps(false))
		}},
		"NotServed": {
			reason: "A handler panics on the event that a kind is not served.", place: inHandler,
			do: func(t *testing.T, h *harness, trap *trap) { //nolint:thelper // It is the case itself.
				watch(t, h, trap, kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Thing"}, Resource: "things"})
			},
		},
		"Secret": {
			reason: "The step panics that looks at changed credentials.", place: inKubeconfig,
			do: func(_ *testing.T, h *harness, _ *trap) {
				h.source.change("a", func(e *Enrolment) { e.CredentialsVersion = "another" })
			},
		},
		"Reconcile": {
			reason: "A reconcile panics.", place: inReconcile,
			do: func(_ *testing.T, h *harness, _ *trap) {
				h.requests.Add(mcreconcile.Request{ClusterName: clusterName("a")})
			},
		},
		"HandOver": {
			reason: "What waits for the new connection panics.", place: inSync,
			do: func(t *testing.T, h *harness, _ *trap) { h.source.set("a", listServer(t, uid, honest)) }, //nolint:thelper // It is the case itself.
		},
		"Body": {
			reason: "A callback of the reader of an answer panics, in a goroutine of client-go or not.", place: inSubscriber,
			do: func(t *testing.T, h *harness, _ *trap) { //nolint:thelper // It is the case itself.
				cl, err := h.Get(t.Context(), clusterName("a"))
				if err != nil {
					t.Fatal(err)
				}
				c, _ := cl.(*connected)
				_, err = c.Dynamic().Resource(configMaps(false).GroupVersionResource()).Namespace("refused").List(t.Context(), metav1.ListOptions{})
				if err == nil {
					t.Error("An answer whose reader panicked is an error.")
				}
			},
		},
		"Task": {
			reason: "What a controller starts in a goroutine panics.", place: inHandler,
			do: func(t *testing.T, h *harness, trap *trap) { //nolint:thelper // It is the case itself.
				cl, err := h.Get(t.Context(), clusterName("a"))
				if err != nil {
					t.Fatal(err)
				}
				multicluster.GetGuard(cl).Go("a test", func() { trap.step(inHandler) })
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, trap := newFakeSource(), &trap{}
			h := newHarnessWith(t, src, func(p *Provider) {
				p.sources["fake"] = trappedSource{src, trap}
				p.Subscribe(func(name mcr.ClusterName) {
					if c, _ := p.Lookup(name); c.Refused.Reason != "" {
						trap.step(inSubscriber)
					}
				})
			}, func(o *Options) {
				o.Gate = trappedGate{o.Gate, trap}
				// This is long enough for the state in between to be seen.
				o.BackoffBase, o.BackoffMax, o.Random = 500*time.Millisecond, 5*time.Second, func() float64 { return 0.5 }
			})
			src.set("neighbour", listServer(t, 32, honest))
			h.waitFor(t, "neighbour", StateConnected, fleetv1alpha1.ReasonConnected)
			neighbour := watchKinds(t, h, "neighbour", configMaps(false))
			connectiontest.Eventually(t, "the neighbour's kind is watched", is(neighbour, configMaps(false), kindwatch.StateSynced))
			// No reconcile runs that could read this field: there is nothing to do.
			h.engager.aware = trappedAware{h.engager.aware, trap}
			h.beforeReconcile(func() { trap.step(inReconcile) })

			if tc.before {
				trap.set(tc.place)
			}
			src.set("a", listServer(t, uid, func(w io.Writer, r *http.Request) {
				if strings.Contains(r.URL.Path, "/refused/") {
					_, _ = io.WriteString(w, "this is not JSON")
					return
				}
				honest(w, r)
			}))
			if !tc.before {
				h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)
				trap.set(tc.place)
				tc.do(t, h, trap)
			}
			connectiontest.Eventually(t, "the cluster is lost, with the reason", func() bool {
				return slices.ContainsFunc(h.events.list(), func(e string) bool { return strings.HasPrefix(e, "a Warning "+fleetv1alpha1.ReasonPanicked+" ") })
			}, func() any { return h.events.list() })
			h.waitFor(t, "a", StateConnected, fleetv1alpha1.ReasonConnected)

			if n := testutil.ToFloat64(h.metrics.panics.WithLabelValues(metric.ClusterValues(clusterName("a"))...)); n != 1 {
				t.Errorf("%s It is counted once. Got %v.", tc.reason, n)
			}
			for _, e := range h.events.list() {
				if strings.Contains(e, "of a test") {
					t.Errorf("%s What was panicked with is in no event. Got %q.", tc.reason, e)
				}
			}
			engagements := h.engagements("neighbour")
			if len(engagements) != 1 || engagements[0].ctx.Err() != nil {
				t.Errorf("%s The neighbour keeps its connection. It was engaged %d times.", tc.reason, len(engagements))
			}
			if s, _ := neighbour.State(configMaps(false)); s != kindwatch.StateSynced {
				t.Errorf("%s The neighbour's watches go on. Its kind is %s.", tc.reason, s)
			}
			src.remove("a")
			connectiontest.Eventually(t, "the cluster is gone", func() bool { _, there := h.Lookup(clusterName("a")); return !there })
			connectiontest.Eventually(t, "the series of the cluster has gone with it, and that of the neighbour is there", func() bool {
				return testutil.CollectAndCount(h.metrics.panics) == 1
			})
		})
	}
}

// TestPanicsBackOffLonger has a panic and another failure, each three times in a row.
func TestPanicsBackOffLonger(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	next := schedule{&Options{
		Clock: clocktesting.NewFakeClock(now), Random: func() float64 { return 1 }, BackoffBase: time.Second, BackoffMax: 5 * time.Minute,
	}}
	for reason, want := range map[string][]time.Duration{
		fleetv1alpha1.ReasonDialError: {time.Second, 2 * time.Second, 4 * time.Second},
		fleetv1alpha1.ReasonPanicked:  {4 * time.Second, 32 * time.Second, 256 * time.Second},
	} {
		r := &record{reason: reason}
		var got []time.Duration
		for range want {
			next.set(r, lifecycle.ActionScheduleRetry)
			got = append(got, r.retryAt.Sub(now))
		}
		if !slices.Equal(got, want) {
			t.Errorf("After %s the back-off is %v, and shall be %v.", reason, got, want)
		}
	}
}
