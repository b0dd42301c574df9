// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/masthead-dev/masthead/pkg/providers/connection/connectiontest"
)

// further is how many clusters are enrolled, one after the other, beside a fleet that is connected.
const further = 50

// BenchmarkFleet connects fleets, each twice as large as the one before, and then enrols further clusters one by one.
// The API servers are in the process, behind one port, and their work is counted, too. It measures work, not time: the
// work for each cluster must not grow with the fleet.
func BenchmarkFleet(b *testing.B) {
	for _, n := range []int{1000, 2000, 4000} {
		b.Run(fmt.Sprintf("clusters=%d", n), func(b *testing.B) {
			for range b.N {
				benchmarkFleet(b, n)
			}
		})
	}
}

func benchmarkFleet(b *testing.B, n int) {
	b.Helper()
	servers := newFakeServers(b)
	src := newFakeSource()
	for i := range n {
		src.setQuietly(servers.name(i), servers.kubeconfig(b, i), func(e *Enrolment) { e.CredentialsVersion = "1" })
	}
	runtime.GC()
	before := servers.work()
	h := newHarness(b, src, func(o *Options) {
		// Periodic work does not count as the work of starting. The queues' number of workers is that of the product.
		o.ProbeInterval, o.ProbeTimeout, o.ConnectTimeout = time.Hour, time.Minute, 5*time.Minute
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	})
	h.waitForClusters(b, n)
	servers.work().since(before).report(b, n, "start")
	b.ReportMetric(float64(runtime.NumGoroutine())/float64(n), "goroutines/cluster")

	// A garbage collection marks what the whole fleet holds. Whether one happens in such a short time is chance.
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	before = servers.work()
	for i := range further {
		src.set(servers.name(n+i), servers.kubeconfig(b, n+i))
		h.waitForClusters(b, n+i+1)
	}
	servers.work().since(before).report(b, further, "further")
	h.stop()
}

// BenchmarkConnection measures what a connection holds while it is idle, and how much more after its first event. What
// the API servers hold, in the same process, is part of it.
func BenchmarkConnection(b *testing.B) {
	const n = 200
	for range b.N {
		servers := newFakeServers(b)
		src := newFakeSource()
		h := newHarness(b, src, func(o *Options) {
			o.ProbeInterval, o.ProbeTimeout, o.ConnectTimeout = time.Hour, time.Minute, time.Minute
		})
		before := inUse(b)
		for i := range n {
			src.set(servers.name(i), servers.kubeconfig(b, i))
		}
		h.waitForClusters(b, n)
		idle := inUse(b)
		idle.since(before).report(b, n, "idle")
		sent := servers.events.Load()
		for _, c := range h.List() {
			cl, err := h.Get(b.Context(), c.Name)
			if err != nil {
				b.Fatal(err)
			}
			cl.GetEventRecorder("test").Eventf(&corev1.ObjectReference{Kind: "ServiceAccount", Namespace: "default", Name: "masthead"}, nil,
				corev1.EventTypeNormal, "First", "Test", "The first event")
		}
		for servers.events.Load() < sent+n {
			pause(b, connectiontest.Tick)
		}
		inUse(b).since(idle).report(b, n, "first-event")
		h.stop()
	}
}

// held is what the process holds.
type held struct{ heap, stack, goroutines float64 }

func inUse(b *testing.B) held {
	b.Helper()
	pause(b, 2*time.Second) // What has just been done ends.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{float64(m.HeapAlloc), float64(m.StackInuse), float64(runtime.NumGoroutine())}
}

func (h held) since(before held) held {
	return held{h.heap - before.heap, h.stack - before.stack, h.goroutines - before.goroutines}
}

// report reports what is held for each of n clusters.
func (h held) report(b *testing.B, n int, what string) {
	b.Helper()
	each := 1 / float64(n)
	b.ReportMetric(h.heap/1024*each, what+"-heap-KiB/cluster")
	b.ReportMetric(h.stack/1024*each, what+"-stack-KiB/cluster")
	b.ReportMetric(h.goroutines*each, what+"-goroutines/cluster")
}

// waitForClusters waits until both objects of each of n clusters have been reconciled.
func (h *harness) waitForClusters(b *testing.B, n int) {
	b.Helper()
	for {
		h.mu.Lock()
		seen := len(h.reconciled)
		h.mu.Unlock()
		if seen >= 2*n {
			return
		}
		pause(b, connectiontest.Tick)
	}
}

// pause waits for a time, or fails if the benchmark ends.
func pause(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-b.Context().Done():
		b.Fatal("the benchmark ended while it waited")
	case <-time.After(d):
	}
}

// fakeServers are any number of fake API servers behind one port, distinguished by the path.
type fakeServers struct {
	*httptest.Server
	requests, events atomic.Int64
}

func newFakeServers(b *testing.B) *fakeServers {
	b.Helper()
	s := &fakeServers{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/events") {
			s.events.Add(1)
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		fakeAPI(w, r, "/"+id, id+"-b8de-4056-8188-02a4f43e3f73")
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	b.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// name is that of a cluster's object. A namespace holds twenty.
func (*fakeServers) name(i int) string { return fmt.Sprintf("ns-%d/c-%d", i/20, i) }

func (s *fakeServers) kubeconfig(b *testing.B, i int) []byte {
	b.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return connectiontest.Kubeconfig(b, fmt.Sprintf("%s/%08d", s.URL, i), ca, "token")
}

// work is the work of the process so far.
type work struct {
	cpu                     time.Duration
	allocs, bytes, requests float64
}

func (s *fakeServers) work() work {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return work{
		cpu:    time.Duration(u.Utime.Nano() + u.Stime.Nano()),
		allocs: float64(m.Mallocs), bytes: float64(m.TotalAlloc), requests: float64(s.requests.Load()),
	}
}

func (w work) since(before work) work {
	return work{w.cpu - before.cpu, w.allocs - before.allocs, w.bytes - before.bytes, w.requests - before.requests}
}

// report reports the work for each of n clusters.
func (w work) report(b *testing.B, n int, what string) {
	b.Helper()
	each := 1 / float64(n)
	b.ReportMetric(w.cpu.Seconds()*1000*each, what+"-cpu-ms/cluster")
	b.ReportMetric(w.allocs*each, what+"-allocs/cluster")
	b.ReportMetric(w.bytes/1024*each, what+"-KiB/cluster")
	b.ReportMetric(w.requests*each, what+"-requests/cluster")
}
