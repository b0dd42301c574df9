// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// widgetRequest is a request for a widget of the fixture.
func widgetRequest(cluster mcr.ClusterName, name string) mcreconcile.Request {
	r := request(cluster, name)
	r.Namespace = metav1.NamespaceDefault
	return r
}

func TestControllerRecoversFromUnreachableCluster(t *testing.T) {
	// The server comes up after the source was started.
	m, r := newManager(t), newRecorder()
	watched := watchKinds(configMaps)
	c := newController(t, m, r, watched)
	started(t, c, m)
	api := newFakeAPI(t)
	up := make(chan struct{})
	host := proxy(t, api.host, up)
	cl := start(t, newCluster(t, host))
	if err := m.Engage(t.Context(), "x", cl); err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := watched.WaitForSync(impatient, "x", cl); err == nil {
		t.Error("a cluster that does not answer is in sync")
	}
	close(up)
	r.await(t, configMap("x", "a"))
	if err := watched.WaitForSync(t.Context(), "x", cl); err != nil {
		t.Error(err)
	}
}

// TestEngagementsLeaveNothingBehind engages and disengages real clusters, with kinds that are and are not served.
func TestEngagementsLeaveNothingBehind(t *testing.T) {
	f := newFixture(t, "rounds")
	f.define()
	f.create("object")
	g := NewGate()
	m, r := newManager(t), newRecorder()
	missingKind := f.kind()
	missingKind.Kind, missingKind.Resource = "Gadget", "gadgets"
	watched := watchKinds(f.kind(), missingKind, namespaces)
	c := newController(t, m, r, watched, func(o *ControllerOptions[mcreconcile.Request]) { o.Gate = g })
	started(t, c, m)
	base := baseLine(t)

	for range 20 {
		cl := f.newCluster(f.cfg)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- cl.Start(ctx) }()
		g.Open("x")
		if err := m.Engage(ctx, "x", cl); err != nil {
			t.Fatal(err)
		}
		r.await(t, widgetRequest("x", "object"))
		if err := watched.WaitForSync(ctx, "x", cl); err != nil {
			t.Error(err)
		}
		cancel()
		g.Forget("x")
		if err := <-done; err != nil {
			t.Error(err)
		}
		cl.GetHTTPClient().CloseIdleConnections()
	}
	noLeak(t, base)
}

// TestControllerMakesBeforeItBreaks replaces the instance of a cluster again and again while objects are created: none
// of them is missed.
func TestControllerMakesBeforeItBreaks(t *testing.T) {
	f := newFixture(t, "replaced")
	f.define()
	g := NewGate()
	g.Open("x")
	m, r := newManager(t), newRecorder()
	c := newController(t, m, r, watchKinds(f.kind()), func(o *ControllerOptions[mcreconcile.Request]) { o.Gate = g })
	started(t, c, m)

	end := func() {}
	for round := range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		cl := f.newCluster(f.cfg)
		go func() { _ = cl.Start(ctx) }()
		if err := m.Engage(ctx, "x", cl); err != nil {
			t.Fatal(err)
		}
		before, between, after := fmt.Sprint("before-", round), fmt.Sprint("between-", round), fmt.Sprint("after-", round)
		f.create(before)
		if err := g.WaitForSync(t.Context(), "x", cl); err != nil {
			t.Fatal(err)
		}
		f.create(between)
		end()
		f.create(after)
		want := map[string]bool{before: true, between: true, after: true}
		eventually(t, "an object was missed", func() bool {
			for {
				select {
				case got := <-r:
					delete(want, got.Name)
				default:
					return len(want) == 0
				}
			}
		})
		end = cancel
	}
	end()
}
