// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// TestPanicWhileLeavingDisengagesTheCluster has what takes leave of a cluster panic.
func TestPanicWhileLeavingDisengagesTheCluster(t *testing.T) {
	src := newFakeSource()
	h := newHarnessWith(t, src, func(p *Provider) {
		p.leavers = append(p.leavers, func(context.Context, mcr.ClusterName) error { panic("of a test") })
	})
	src.set("a", listServer(t, 20, func(w io.Writer, r *http.Request) { honestPage(w, r, 1, 1) }))
	h.waitFor(t, "a", StateConnected, ReasonConnected)
	src.remove("a")
	eventually(t, "the cluster is gone", func() bool { _, there := h.Lookup(clusterName("a")); return !there })
}

// TestPanicOfAHandlerCostsTheKind has a handler panic at first.
func TestPanicOfAHandlerCostsTheKind(t *testing.T) {
	src := newFakeSource()
	h := newHarness(t, src)
	src.set("a", listServer(t, 21, func(w io.Writer, r *http.Request) { honestPage(w, r, 3, 1) }))
	h.waitFor(t, "a", StateConnected, ReasonConnected)
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
	eventually(t, "the kind is listed again, and everything told", func() bool { return is(w, configMaps(false), kindwatch.StateSynced)() && seen.Load() == 4 })
}
