// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Metrics: m, Workers: 8})

	depth := func(reason string, series ...string) {
		t.Helper()
		want := ""
		if len(series) > 0 {
			want = "# HELP masthead_queue_depth Items of a cluster that are due and wait for a worker, or for the cluster to be" +
				" connected.\n# TYPE masthead_queue_depth gauge\n" + strings.Join(series, "\n") + "\n"
		}
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "masthead_queue_depth"); err != nil {
			t.Errorf("%s\n%v", reason, err)
		}
	}
	waited := func() (n uint64, sum float64) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "masthead_queue_wait_seconds" {
				h := f.GetMetric()[0].GetHistogram()
				return h.GetSampleCount(), h.GetSampleSum()
			}
		}
		return 0, 0
	}

	depth("The hub is there from the start.", `masthead_queue_depth{cluster_name="hub",cluster_namespace="",controller="test",source="hub"} 0`)
	g.Open("capi/a/b")
	q.Add(request("capi/a/b", "1"))
	q.Add(request("capi/a/b", "2"))
	q.AddAfter(request("capi/a/b", "3"), time.Hour)
	depth("What is due counts.", `masthead_queue_depth{cluster_name="b",cluster_namespace="a",controller="test",source="capi"} 2`,
		`masthead_queue_depth{cluster_name="hub",cluster_namespace="",controller="test",source="hub"} 0`)

	q.clock.Step(2 * time.Second)
	item, _ := q.Get()
	q.Add(item)
	depth("What is held behind its own reconcile counts, too.", `masthead_queue_depth{cluster_name="b",cluster_namespace="a",controller="test",source="capi"} 2`,
		`masthead_queue_depth{cluster_name="hub",cluster_namespace="",controller="test",source="hub"} 0`)
	if n, sum := waited(); n != 1 || sum != 2 {
		t.Errorf("want one item that waited 2 s, got %d that waited %v s", n, sum)
	}
	q.Done(item)
	q.drain()
	_, before := waited()
	q.Add(item)
	g.Close("capi/a/b")
	q.clock.Step(time.Minute)
	g.Open("capi/a/b")
	q.clock.Step(3 * time.Second)
	q.drain()
	if _, sum := waited(); sum != before+3 {
		t.Errorf("the time behind a closed gate does not count: want 3 s more, got %v s", sum-before)
	}

	hanging := func(reason string, want float64) {
		t.Helper()
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "masthead_queue_hanging" {
				continue
			}
			for _, series := range f.GetMetric() {
				if series.GetLabel()[0].GetValue() == "b" && series.GetGauge().GetValue() != want {
					t.Errorf("%s\nwant %v, got %v", reason, want, series.GetGauge().GetValue())
				}
			}
		}
	}
	hanging("No item hung.", 0)
	q.Add(item)
	q.Get()
	q.clock.Step(hungAfter)
	q.Done(item)
	hanging("An item has hung.", 1)
	q.clock.Step(maxPenalty)
	hanging("The penalty is over.", 0)

	held := request("capi/a/b", "held")
	q.Add(held)
	q.ready()
	g.Forget("capi/a/b")
	depth("The series of a cluster goes with the cluster, even while an item is in flight.",
		`masthead_queue_depth{cluster_name="hub",cluster_namespace="",controller="test",source="hub"} 0`)
	q.Done(held)

	q.ShutDown()
	depth("Nothing is left after shutdown.")
	if n := testutil.CollectAndCount(m); n != 0 {
		t.Errorf("series left: want 0, got %d", n)
	}
}

// TestScrapeHoldsNoLockOfAQueue has a scrape that receives one metric and then stalls, and uses the queue meanwhile.
func TestScrapeHoldsNoLockOfAQueue(t *testing.T) {
	m := NewMetrics(prometheus.NewPedanticRegistry())
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Metrics: m, Workers: 8})
	g.Open("capi/a/b")
	scrape := make(chan prometheus.Metric)
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		m.Collect(scrape)
	}()
	<-scrape // Of four: the hub has two, too.
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		q.Add(request("capi/a/b", "1"))
		item, _ := q.Get()
		q.Done(item)
		m.removeQueue("other", q)
	}()
	select {
	case <-worked:
	case <-time.After(time.Minute):
		t.Error("the queue waits for a scrape")
	}
	go func() {
		for range scrape {
		}
	}()
	<-collected
	close(scrape)
}
