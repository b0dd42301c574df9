// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// TestTwentyRoundsLeaveNothingBehind enrols and removes a cluster twenty times, every other time with an event recorder
// in use, and compares goroutines and metric series with those before.
func TestTwentyRoundsLeaveNothingBehind(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	h := newHarness(t, src)
	kubeconfig := f.kubeconfig(t, s.token(t))
	round := func(i int) {
		src.set("a", kubeconfig)
		h.waitFor(t, "a", StateConnected, "")
		name := fmt.Sprintf("round-%d", i)
		s.createObject(t, name)
		h.waitReconciled(t, "a", name)
		if i%2 == 0 {
			cl, err := h.Get(t.Context(), clusterName("a"))
			if err != nil {
				t.Fatal(err)
			}
			cl.GetEventRecorder("test").Eventf(&corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "default", Name: name}, nil,
				corev1.EventTypeNormal, "Round", "Test", "Round %d", i)
		}
		src.remove("a")
		connectiontest.Eventually(t, "the cluster is gone", func() bool {
			_, ok := h.Lookup(clusterName("a"))
			return !ok
		})
	}
	round(-1) // Everything that is started only once is started now.
	series := func() int {
		families, err := h.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, fam := range families {
			n += len(fam.GetMetric())
		}
		return n
	}
	settle(t)
	base, baseSeries := runtime.NumGoroutine(), series()
	for i := range 20 {
		round(i)
	}
	connectiontest.Eventually(t, "goroutines are back at the base line", func() bool { return runtime.NumGoroutine() <= base },
		func() any { return fmt.Sprintf("%d, not %d\n%s", runtime.NumGoroutine(), base, stacks()) })
	if got := series(); got != baseSeries {
		t.Errorf("series: want %d, got %d", baseSeries, got)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.engaged {
		if e.ctx.Err() == nil {
			t.Error("the context of an engagement lives on")
		}
	}
}

// settle waits until the number of goroutines has not changed for a while.
func settle(t *testing.T) {
	t.Helper()
	last, since := runtime.NumGoroutine(), time.Now()
	connectiontest.Eventually(t, "the number of goroutines settles", func() bool {
		if n := runtime.NumGoroutine(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > time.Second
	})
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// TestDeadClustersDelayNoOtherCluster enrols clusters that never answer, nearly as many as may be tried at once in a
// namespace, and as many again in another namespace, before and after a live one, and a live one between them. The dead
// clusters stay dead for the whole test: waiting for them would never end.
func TestDeadClustersDelayNoOtherCluster(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	const dead = 40 // Of 50 at once, 25 in each namespace.
	// The dead clusters speak TLS and never answer a request: the time-out of a handshake is fixed, and shorter than this
	// test may take.
	hole := newFrontend(t, nil)
	hole.setAnswer(func(w http.ResponseWriter, _ *http.Request) bool { // Requests that still hang at the end get this answer.
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	hole.setHang(true)
	waitedFor := func() int { return hole.count(func(string) bool { return true }) }
	kubeconfig := hole.kubeconfig(t, "x")
	enrolDead := func(group string) {
		for i := range dead / 2 {
			src.set(fmt.Sprintf("%s/dead-%d", group, i), kubeconfig)
		}
	}
	enrolDead("ns")
	h := newHarness(t, src, func(o *Options) { o.ProbeTimeout = time.Hour; o.ConnectTimeout = time.Hour })
	allHang := func(want int) {
		t.Helper()
		connectiontest.Eventually(t, "workers wait for all the dead", func() bool {
			for _, c := range h.List() {
				// The handshake took too long: with other credentials it is tried again, as a cluster that has not failed yet.
				if c.State == StateBackoff {
					o := c.Enrolment.Object
					src.set(o.Namespace+"/"+o.Name, hole.kubeconfig(t, fmt.Sprintf("x%d", waitedFor())))
				}
			}
			return waitedFor() >= want
		}, func() any { return waitedFor() })
	}
	allHang(dead / 2)
	enrolDead("other")
	allHang(dead)
	src.set("a", f0.kubeconfig(t, s0.token(t)))
	h.waitReconciled(t, "a", "masthead")
	src.set("b", f1.kubeconfig(t, s1.token(t)))
	h.waitReconciled(t, "b", "masthead")
	if got := waitedFor(); got != dead {
		t.Errorf("want one request to each of the dead, for which a worker waits to the end, got %d to %d", got, dead)
	}
}

// TestDeadClustersThatFailedBeforeLeaveRoom has more suspects than workers: all of them are tried again and again. A
// new cluster connects, and a connected one is probed, as if they did not exist.
func TestDeadClustersThatFailedBeforeLeaveRoom(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	f0, f1 := newFrontend(t, s0), newFrontend(t, s1)
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) { o.ProbeTimeout = 2 * time.Second })
	src.set("a", f0.kubeconfig(t, s0.token(t)))
	h.waitFor(t, "a", StateConnected, "")
	const dead = 60 // More than there are places in the lane of those that failed before.
	hole := connectiontest.BlackHole(t)
	for i := range dead {
		src.set(fmt.Sprintf("dead-%d", i), connectiontest.Kubeconfig(t, hole, nil, "x"))
	}
	for i := range dead {
		h.waitFor(t, fmt.Sprintf("dead-%d", i), StateBackoff, fleetv1alpha1.ReasonDialError)
	}
	probes := func() int { return f0.count(func(l string) bool { return l == "GET /readyz" }) }
	before := probes()
	src.set("b", f1.kubeconfig(t, s1.token(t)))
	h.waitReconciled(t, "b", "masthead")
	connectiontest.Eventually(t, "the connected cluster is probed", func() bool { return probes() >= before+3 })
	h.waitFor(t, "a", StateConnected, "") // A probe may have been slow just now.
}

// TestFlappingClusterBacksOff has an API server that answers the requests of an attempt to connect, and then does not
// accept the credentials any more.
func TestFlappingClusterBacksOff(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	var refused atomic.Int32 // The version is the last request of an attempt to connect. Three probes have to fail then.
	refused.Store(3)
	f.setAnswer(func(w http.ResponseWriter, r *http.Request) bool {
		switch r.URL.Path {
		case "/version":
			refused.Store(0)
			return false
		case "/readyz":
			if refused.Add(1) > 3 {
				return false
			}
		case "/api/v1/namespaces/kube-system":
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	src := newFakeSource()
	h := newHarness(t, src, func(o *Options) {
		o.BackoffBase, o.BackoffMax, o.SettlePeriod = time.Millisecond, time.Hour, time.Hour
	})
	src.set("a", f.kubeconfig(t, s.token(t)))
	connectiontest.Eventually(t, "it was connected and lost several times", func() bool { return len(h.engagements("a")) > 5 })
	h.stop()
	if got := h.records.get(NewKey("fake", nn("a"))).attempts; got < 5 {
		t.Errorf("want the back-off to have grown with each loss, got %d attempts in a row", got)
	}
}

// TestBackoffIsResetWhenAConnectionSettles connects a cluster that was refused before.
func TestBackoffIsResetWhenAConnectionSettles(t *testing.T) {
	s := realServer(t, 0)
	f := newFrontend(t, s)
	src := newFakeSource()
	token := s.token(t)
	f.accept() // It accepts no token.
	h := newHarness(t, src, func(o *Options) { o.SettlePeriod = o.ProbeInterval })
	src.set("a", f.kubeconfig(t, token))
	probes := func() int { return f.count(func(l string) bool { return l == "GET /readyz" }) }
	connectiontest.Eventually(t, "it was refused a few times", func() bool { return probes() > 3 })
	f.accept(token)
	h.waitFor(t, "a", StateConnected, "")
	before := probes()
	connectiontest.Eventually(t, "it was probed for longer than it takes", func() bool { return probes() > before+4 })
	h.stop()
	if got := h.records.get(NewKey("fake", nn("a"))).attempts; got != 0 {
		t.Errorf("want earlier failures forgotten, got %d", got)
	}
}

// TestStoppedProcess stops the process of a real API server, and resumes it.
func TestStoppedProcess(t *testing.T) {
	s0, s1 := realServer(t, 0), realServer(t, 1)
	src := newFakeSource()
	var degraded atomic.Bool // The state ends after a few probes, so polling may miss it.
	h := newHarnessWith(t, src, func(p *Provider) {
		p.Subscribe(func(name mcr.ClusterName) {
			if c, _ := p.Lookup(name); name == clusterName("b") && c.State == StateDegraded && c.Reason == fleetv1alpha1.ReasonDialError {
				degraded.Store(true)
			}
		})
	}, func(o *Options) { o.ProbeInterval, o.ProbeTimeout = 500*time.Millisecond, time.Second })
	src.set("a", connectiontest.Kubeconfig(t, s0.cfg.Host, s0.cfg.CAData, s0.token(t)))
	src.set("b", connectiontest.Kubeconfig(t, s1.cfg.Host, s1.cfg.CAData, s1.token(t)))
	h.waitReconciled(t, "a", "masthead")
	h.waitReconciled(t, "b", "masthead")
	cl, err := h.Get(t.Context(), clusterName("b"))
	if err != nil {
		t.Fatal(err)
	}

	pid := findProcess(t, s1)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	resume := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(resume)
	connectiontest.Eventually(t, "b is degraded", degraded.Load)
	s0.createObject(t, "meanwhile")
	h.waitReconciled(t, "a", "meanwhile")
	h.waitFor(t, "b", StateBackoff, fleetv1alpha1.ReasonDialError)
	if ctx := cl.(Connected).Context(); ctx.Err() == nil || !strings.Contains(context.Cause(ctx).Error(), fleetv1alpha1.ReasonDialError) {
		t.Errorf("the context of the connection must end with the reason, got %v", context.Cause(ctx))
	}
	h.waitFor(t, "a", StateConnected, "") // A probe may have been slow just now.
	resume()
	h.waitFor(t, "b", StateConnected, "")
	s1.createObject(t, "after")
	h.waitReconciled(t, "b", "after")
}

// findProcess finds the process of an API server that this test binary started.
func findProcess(t *testing.T, s *apiServer) int {
	t.Helper()
	u, err := url.Parse(s.cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	port := u.Port()
	if port == "" {
		port = s.cfg.Host[strings.LastIndex(s.cfg.Host, ":")+1:]
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(args, []byte("kube-apiserver")) || !bytes.Contains(args, []byte("--secure-port="+port+"\x00")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			return pid
		}
	}
	t.Fatalf("there is no kube-apiserver on port %s", port)
	return 0
}
