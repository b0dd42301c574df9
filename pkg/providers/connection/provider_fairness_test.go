// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
	"github.com/masthead-dev/masthead/pkg/providers/connection/lifecycle"
)

func everything(string) bool { return true }

// newHole returns an API server that speaks TLS and answers with 401, or, after hang is called, not at all for as long
// as the test runs.
func newHole(t *testing.T) (f *frontend, hang func()) {
	t.Helper()
	f = newFrontend(t, nil)
	f.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	return f, func() { f.setHang(true) }
}

// TestTouchedSecretKeepsTheBackOff: otherwise a user who may write a Secret could make the manager retry a dead cluster
// at will.
func TestTouchedSecretKeepsTheBackOff(t *testing.T) {
	f, _ := newHole(t)
	src := newFakeSource()
	clock := testingclock.NewFakePassiveClock(time.Now()) // It stands still: no back-off ends by itself.
	h := newHarness(t, src, func(o *Options) { o.Clock = clock })
	reads := func() (n int) {
		src.with("a", func(e *entry) { n = e.reads })
		return n
	}
	kubeconfig := f.kubeconfig(t, "x")
	src.set("a", kubeconfig)
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonUnauthorized)
	attempts := f.count(everything)
	for i := range 5 {
		before := reads()
		// Another version, another text, the same meaning; in between, the Secret is removed and comes back.
		kubeconfig = append(bytes.Clone(kubeconfig), '\n')
		src.set("a", kubeconfig)
		connectiontest.Eventually(t, "the Secret is read", func() bool { return reads() > before })
		if i == 2 {
			src.change("a", func(e *Enrolment) { e.CredentialsVersion = "" })
			h.waitFor(t, "a", StatePending, fleetv1alpha1.ReasonNoCredentials)
			src.set("a", kubeconfig)
			h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonUnauthorized)
			attempts = f.count(everything) // One attempt: what was missing is back.
		}
	}
	if got := f.count(everything); got != attempts {
		t.Errorf("want no attempt because a Secret was touched, got %d", got-attempts)
	}
	src.set("a", f.kubeconfig(t, "y"))
	connectiontest.Eventually(t, "other credentials are tried at once", func() bool { return f.count(everything) > attempts })
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonUnauthorized)
	h.stop()
	if got := h.records.get(NewKey("fake", nn("a"))).attempts; got != 1 {
		t.Errorf("want the failures of other credentials forgotten, got %d", got)
	}
}

// TestNoCredentialsKeepTheBackOff: removing a Secret and restoring it ends no back-off.
func TestNoCredentialsKeepTheBackOff(t *testing.T) {
	f, _ := newHole(t)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.Clock = testingclock.NewFakePassiveClock(time.Now()) })
	src.set("a", f.kubeconfig(t, "x"))
	for range 3 {
		h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonUnauthorized)
		src.change("a", func(e *Enrolment) { e.CredentialsVersion = "" })
		h.waitFor(t, "a", StatePending, fleetv1alpha1.ReasonNoCredentials)
		src.set("a", f.kubeconfig(t, "x"))
	}
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonUnauthorized)
	h.stop()
	if got := h.records.get(NewKey("fake", nn("a"))).attempts; got != 4 {
		t.Errorf("want the failures counted on, got %d", got)
	}
}

// TestOneNamespaceLeavesRoomToOthers enrols more clusters in one namespace than there are workers, all of which hang
// for the whole test: waiting for a place holds no worker.
func TestOneNamespaceLeavesRoomToOthers(t *testing.T) {
	f := newFrontend(t, nil)
	hole, hang := newHole(t)
	hang()
	src := newFakeSource()
	for i := range workersFor(minConcurrentReconciles) + 10 {
		src.set(fmt.Sprintf("greedy/%d", i), hole.kubeconfig(t, "x"))
	}
	h := newHarness(t, src, func(o *Options) { o.ProbeTimeout = time.Hour; o.ConnectTimeout = time.Hour })
	connectiontest.Eventually(t, "the namespace has all that it may have", func() bool { return hole.count(everything) >= minConcurrentReconciles/2 })
	src.set("a", f.kubeconfig(t, "token"))
	h.waitFor(t, "a", StateConnected, "")
}

// TestRecoveryDoesNotWaitForTheDead has a connected cluster that misses a probe while clusters that failed before, of
// several namespaces, hold every place in their lane and would hold every worker, for as long as the test runs.
func TestRecoveryDoesNotWaitForTheDead(t *testing.T) {
	f := newFrontend(t, nil)
	hole, hang := newHole(t)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) {
		o.ProbeTimeout, o.ConnectTimeout, o.ProbeFailureThreshold = time.Hour, time.Hour, 1000
	})
	src.set("a", f.kubeconfig(t, "token"))
	h.waitFor(t, "a", StateConnected, "")
	name := func(i int) string { return fmt.Sprintf("dead-%d/%d", i%3, i) }
	dead := workersFor(minConcurrentReconciles) + 10
	for i := range dead {
		src.set(name(i), hole.kubeconfig(t, "x"))
	}
	for i := range dead {
		h.waitFor(t, name(i), StateBackoff, fleetv1alpha1.ReasonUnauthorized)
	}
	before := hole.count(everything)
	hang()
	retries := lanePlaces(minConcurrentReconciles)[laneRetry]
	connectiontest.Eventually(t, "the dead have all places", func() bool { return hole.count(everything) >= before+retries })

	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/readyz" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	h.waitFor(t, "a", StateDegraded, fleetv1alpha1.ReasonUnauthorized)
	f.setAnswer(nil)
	h.waitFor(t, "a", StateConnected, "")
}

// TestSecondProbeIsQuick: writes fail until the next probe shows whether the failure was transient.
func TestSecondProbeIsQuick(t *testing.T) {
	now := time.Now()
	p, err := New(Options{
		Sources: []Source{newFakeSource()}, Gate: &countingGate{}, ProbeInterval: time.Minute,
		Clock: testingclock.NewFakePassiveClock(now), Random: func() float64 { return 0.5 },
	})
	if err != nil {
		t.Fatal(err)
	}
	for failures, want := range map[int]time.Duration{0: time.Minute, 1: secondProbe, 2: time.Minute} {
		r := &record{probedAt: now, probeFailures: failures}
		p.schedule.set(r, lifecycle.ActionScheduleProbe)
		if got := r.probeAt.Sub(now); got != want {
			t.Errorf("after %d failures: want the next probe in %s, got %s", failures, want, got)
		}
	}
}

// watchDegraded records whether a cluster was Degraded for a reason, and whether its connection was ever lost.
func watchDegraded(h *harness, name, reason string) (seen, lost *atomic.Bool) {
	seen, lost = &atomic.Bool{}, &atomic.Bool{}
	h.Subscribe(func(n mcr.ClusterName) {
		if n != clusterName(name) {
			return
		}
		switch c, _ := h.Lookup(n); {
		case c.State == StateDegraded && c.Reason == reason:
			seen.Store(true)
		case c.State == StateBackoff:
			lost.Store(true)
		}
	})
	return seen, lost
}

// TestSingleUnauthorizedIsDegradedFirst makes an authenticator fail for one probe, and then the hub while a token is
// rotated.
func TestSingleUnauthorizedIsDegradedFirst(t *testing.T) {
	f := newFrontend(t, nil)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.ProbeFailureThreshold = 1000 })
	const first, second = "first", "second"
	f.accept(first)
	src.set("a", f.kubeconfig(t, first))
	h.waitFor(t, "a", StateConnected, "")
	seen, lost := watchDegraded(h, "a", fleetv1alpha1.ReasonUnauthorized)

	f.accept()
	connectiontest.Eventually(t, "it is degraded", seen.Load)
	f.accept(first)
	h.waitFor(t, "a", StateConnected, "")

	seen.Store(false)
	src.with("a", func(e *entry) { e.unreadable = true })
	src.setQuietly("a", f.kubeconfig(t, second))
	f.accept(second)
	connectiontest.Eventually(t, "it is degraded", seen.Load)
	src.with("a", func(e *entry) { e.unreadable = false })
	h.waitFor(t, "a", StateConnected, "")
	if lost.Load() || len(h.engagements("a")) != 1 {
		t.Error("want the connection kept")
	}
}

// TestReplacedCredentialsAfterUnauthorized: the Secret has an endpoint and a token that the watch has not reported yet.
func TestReplacedCredentialsAfterUnauthorized(t *testing.T) {
	old, next := newFrontend(t, nil), newFrontend(t, nil)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.ProbeFailureThreshold = 1000 })
	src.set("a", old.kubeconfig(t, "token"))
	h.waitFor(t, "a", StateConnected, "")
	_, lost := watchDegraded(h, "a", fleetv1alpha1.ReasonUnauthorized)
	src.setQuietly("a", next.kubeconfig(t, "token"))
	old.accept()
	connectiontest.Eventually(t, "the new connection takes over", func() bool { return len(h.engagements("a")) == 2 })
	h.waitFor(t, "a", StateConnected, "")
	if lost.Load() {
		t.Error("want the connection that served kept until then")
	}
}

// TestIdentityIsRequestedOnNewConnections has a load balancer that leads to another cluster, which accepts the same
// token.
func TestIdentityIsRequestedOnNewConnections(t *testing.T) {
	f := newFrontend(t, nil)
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", f.kubeconfig(t, "token"))
	h.waitFor(t, "a", StateConnected, "")
	requested := func() int { return f.count(func(l string) bool { return l == "GET /api/v1/namespaces/kube-system" }) }
	probed := func() int { return f.count(func(l string) bool { return l == "GET /readyz" }) }
	before := probed()
	connectiontest.Eventually(t, "it is probed", func() bool { return probed() > before+3 })
	if got := requested(); got > 2 {
		t.Errorf("want the identity requested on new connections only, got %d times", got)
	}
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces/kube-system" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"b7e59a8a-b8de-4056-8188-02a4f43e3f73"}}`))
		return true
	})
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	cl.(*connected).transport.CloseConnections()
	h.waitFor(t, "a", StateBackoff, fleetv1alpha1.ReasonClusterIdentityChanged)
}

// TestTokenRotatesWhileDraining drains a cluster whose first token is no longer accepted. In one case the hub's watch
// reports the second token; in the other the label is removed, so that the hub reports nothing.
func TestTokenRotatesWhileDraining(t *testing.T) {
	for name, change := range map[string]func(*entry, []byte){
		"Forbidden":  func(e *entry, kubeconfig []byte) { e.kubeconfig, e.CredentialsVersion = kubeconfig, "rotated" },
		"Unenrolled": func(e *entry, kubeconfig []byte) { e.kubeconfig = kubeconfig },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFrontend(t, nil)
			src := newFakeSource()
			const first, second = "first", "second"
			f.accept(first)
			l := newOffboarder(t, src)
			l.h.blockObject("slow") // A pause does not offboard: running work makes the drain last.
			src.set("a", f.kubeconfig(t, first))
			l.h.waitFor(t, "a", StateConnected, "")
			cl, err := l.h.Get(t.Context(), clusterName("a"))
			if err != nil {
				t.Fatal(err)
			}
			connectiontest.Eventually(t, "a reconcile is in flight", func() bool {
				l.h.mu.Lock()
				defer l.h.mu.Unlock()
				return l.h.waited
			})
			if name == "Unenrolled" {
				src.with("a", func(e *entry) { e.unenrolled = true })
			} else {
				src.with("a", func(e *entry) { e.Paused = true })
			}
			src.wake("a")
			l.h.waitFor(t, "a", StateDraining, "")
			f.accept(second)
			src.with("a", func(e *entry) { change(e, f.kubeconfig(t, second)) })
			if name != "Unenrolled" {
				src.wake("a")
			}
			connectiontest.Eventually(t, "the new token is in use", func() bool {
				err := cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{})
				return err == nil
			}, func() any { state, reason := l.h.state("a"); return fmt.Sprint(state, reason) })
			if state, _ := l.h.state("a"); state != StateDraining {
				t.Errorf("want it to be draining still, got %s", state)
			}
			close(l.proceed)
			l.h.unblock()
		})
	}
}
