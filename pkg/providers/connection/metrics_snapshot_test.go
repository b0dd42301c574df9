// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

func TestKeyAndClusterName(t *testing.T) {
	k := Key{Source: "capi", Namespace: "ns", Name: "c1"}
	if got := k.ClusterName(); got != "capi/ns/c1" {
		t.Errorf("want capi/ns/c1, got %s", got)
	}
	if got, ok := ParseClusterName("capi/ns/c1"); !ok || got != k {
		t.Errorf("want %v, got %v %t", k, got, ok)
	}
	for _, name := range []mcr.ClusterName{"", "a", "a/b", "a/b/c/d"} {
		if _, ok := ParseClusterName(name); ok {
			t.Errorf("%q is not a cluster name of ours", name)
		}
	}
}

func TestEnrolledClass(t *testing.T) {
	type want struct {
		class    string
		enrolled bool
	}
	cases := map[string]struct {
		reason string
		labels map[string]string
		want   want
	}{
		"None":   {"Not enrolled.", nil, want{}},
		"Empty":  {"Names no class.", map[string]string{"masthead.dev/enroll": ""}, want{}},
		"False":  {"Not enrolled, in words.", map[string]string{"masthead.dev/enroll": "false"}, want{}},
		"True":   {"The default class.", map[string]string{"masthead.dev/enroll": "true"}, want{"default", true}},
		"Python": {"A word of other languages means the same.", map[string]string{"masthead.dev/enroll": "False"}, want{}},
		"Off":    {"As do YAML's other words.", map[string]string{"masthead.dev/enroll": "off"}, want{}},
		"Yes":    {"The default class.", map[string]string{"masthead.dev/enroll": "Yes"}, want{"default", true}},
		"Other":  {"A class by name.", map[string]string{"masthead.dev/enroll": "gold"}, want{"gold", true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			got.class, got.enrolled = EnrolledClass(tc.labels)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*Options)
		ok     bool
	}{
		"Good":       {"Sources and a gate are enough.", func(*Options) {}, true},
		"NoSource":   {"Nothing would ever be connected.", func(o *Options) { o.Sources = nil }, false},
		"NoGate":     {"Work could not be held.", func(o *Options) { o.Gate = nil }, false},
		"TwoOfAName": {"Cluster names would collide.", func(o *Options) { o.Sources = append(o.Sources, newFakeSource()) }, false},
		"FewWorkers": {"Dead clusters would hold them all.", func(o *Options) { o.MaxConcurrentReconciles = 10 }, false},
		"Backoff":    {"The longest is shorter than the first.", func(o *Options) { o.BackoffBase = time.Hour }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := Options{Sources: []Source{newFakeSource()}, Gate: nopGate{}}
			tc.change(&o)
			if _, err := New(o); (err == nil) != tc.ok {
				t.Errorf("%s\nwant ok %t, got %v", tc.reason, tc.ok, err)
			}
		})
	}
}

type nopGate struct{ Gate }

func TestSubscribersHearOfWhatReadersCanSee(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	var mu sync.Mutex
	var seen []string
	h := newHarnessWith(t, src, func(p *Provider) {
		p.Subscribe(func(name mcr.ClusterName) {
			c, _ := p.Lookup(name) // No lock is held: reading must not hang.
			mu.Lock()
			defer mu.Unlock()
			if line := string(c.State) + " " + c.Refused.Reason; len(seen) == 0 || seen[len(seen)-1] != line {
				seen = append(seen, line)
			}
		})
	})
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitReconciled(t, "a", "masthead")
	h.waitFor(t, "a", StateConnected, "")
	// A state can be seen a moment before subscribers hear of it.
	lastHeard := func(line string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen) > 0 && seen[len(seen)-1] == line
		}
	}
	all := func() any {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
	connectiontest.Eventually(t, "subscribers hear that it is connected", lastHeard("Connected "), all)
	refused := &limits.Error{Limit: limits.LimitDepth}
	h.view.answerRefused(clusterName("a"), refused)
	h.view.answerRefused(clusterName("a"), refused)
	h.view.answerRefused("fake/ns/unknown", refused)
	src.remove("a")
	connectiontest.Eventually(t, "subscribers hear that it is gone", lastHeard(" "), all)
	want := []string{"Connecting ", "Connected ", "Connected AnswerRefused"}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, seen[:min(len(seen), len(want))]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMetricsFollowTheState(t *testing.T) {
	m := newMetrics(nil)
	m.setState("a", "", StateConnecting)
	m.setState("a", StateConnecting, StateConnected)
	m.connectedBy("a", causeFirst)
	if got := testutil.CollectAndCount(m.connects); got != 2 {
		t.Errorf("want a series of the first connection, and one that counts from zero on how often it is lost, got %d", got)
	}
	for cause, want := range map[string]float64{causeFirst: 1, causeProbe: 0} {
		if got := testutil.ToFloat64(m.connects.WithLabelValues("", "a", "", cause)); got != want {
			t.Errorf("want %v connections by %q, got %v", want, cause, got)
		}
	}
	m.setState("b", "", StateBackoff)
	m.failed("b", fleetv1alpha1.ReasonDialError)
	m.waited("b", time.Second)
	if got := testutil.CollectAndCount(m.state); got != 2 {
		t.Errorf("want one series of the state for each cluster, got %d", got)
	}
	if got := testutil.ToFloat64(m.connected.WithLabelValues("", "a", "")); got != 1 {
		t.Errorf("a is connected, got %v", got)
	}
	if got := testutil.ToFloat64(m.connected.WithLabelValues("", "b", "")); got != 0 {
		t.Errorf("b is not connected, got %v", got)
	}
	m.forget("b")
	m.forget("a")
	for _, c := range []int{
		testutil.CollectAndCount(m.state), testutil.CollectAndCount(m.connected), testutil.CollectAndCount(m.failures),
		testutil.CollectAndCount(m.connects), testutil.CollectAndCount(m.throttled),
	} {
		if c != 0 {
			t.Errorf("want no series, got %d", c)
		}
	}
}

// TestDeadlineHoldsAgainstRetryAfter has an API server that asks clients to repeat each request in an hour.
func TestDeadlineHoldsAgainstRetryAfter(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.RequestTimeout = 300 * time.Millisecond })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitReconciled(t, "a", "masthead")
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	// The client learns which resource the kind is first. That may take longer than the deadline.
	ns := &corev1.Namespace{}
	connectiontest.Eventually(t, "the cluster can be read", func() bool {
		err = cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, ns)
		return err == nil
	}, func() any { return err })
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/readyz" {
			return false
		}
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	done := make(chan error, 2)
	ctx := t.Context()
	go func() { done <- cl.GetAPIReader().Get(ctx, client.ObjectKey{Name: "default"}, ns.DeepCopy()) }()
	go func() { done <- cl.GetAPIReader().List(ctx, &corev1.NamespaceList{}) }()
	for range 2 {
		select {
		case err := <-done:
			if err == nil {
				t.Error("want an error")
			}
		case <-time.After(connectiontest.Patience):
			t.Fatal("it waits for as long as the API server says")
		}
	}
}

func TestDeadlineHoldsAgainstTheRateLimit(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.QPS, o.Burst, o.RequestTimeout = 0.0001, 50, 300*time.Millisecond })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitReconciled(t, "a", "masthead")
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := t.Context(), make(chan struct{})
	go func() { // Until the burst is used up, and the next request would have to wait for hours.
		defer close(done)
		for err := error(nil); err == nil; {
			err = cl.GetAPIReader().Get(ctx, client.ObjectKey{Name: "default"}, &corev1.Namespace{})
		}
	}()
	select {
	case <-done:
	case <-time.After(connectiontest.Patience):
		t.Fatal("a read waits for the rate limiter without a deadline")
	}
}

func TestReadsHaveADeadlineAndWatchesHaveNone(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.RequestTimeout = 300 * time.Millisecond; o.ProbeFailureThreshold = 1000 })
	src.set("a", f.kubeconfig(t, s.token(t)))
	h.waitReconciled(t, "a", "masthead")
	before := f.watchRequests()
	cl, err := h.Get(t.Context(), clusterName("a"))
	if err != nil {
		t.Fatal(err)
	}
	f.setHang(true)
	if err := cl.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}); err == nil {
		t.Error("a read of an API server that does not answer must end")
	}
	if err := cl.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "x"}, &corev1.Secret{}); err == nil {
		t.Error("a read of an API server that does not answer must end")
	}
	f.setHang(false)
	h.waitFor(t, "a", StateConnected, "")
	s.createObject(t, "later")
	h.waitReconciled(t, "a", "later")
	if got := f.watchRequests(); got != before {
		t.Errorf("the time-out of requests cut a watch: want %d lists and watches, got %d", before, got)
	}
}
