// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// fill opens the gate for clusters, and queues items of them.
func (q *testQueue) fill(g *Gate, n int, clusters ...mcr.ClusterName) {
	q.t.Helper()
	for _, name := range clusters {
		g.Open(name)
		for i := range n {
			q.Add(request(name, fmt.Sprint(i)))
		}
	}
}

// takeAll takes the items that can be taken without waiting, and returns their number for each cluster.
func (q *testQueue) takeAll() map[mcr.ClusterName]int {
	got := map[mcr.ClusterName]int{}
	for q.hasWork() {
		item, _ := q.Get()
		got[item.ClusterName]++
	}
	return got
}

func names(prefix string, n int) []mcr.ClusterName {
	out := make([]mcr.ClusterName, n)
	for i := range out {
		out[i] = mcr.ClusterName(fmt.Sprint(prefix, i))
	}
	return out
}

func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		// items are how long items were in flight, one after the other. A negative one is a pause.
		items         []time.Duration
		wantSize      int
		wantPenalised bool
	}{
		"New":         {reason: "Nothing is known of a new cluster.", wantSize: 1},
		"Doubles":     {reason: "Each item that ends in time doubles the window.", items: []time.Duration{time.Second, time.Second}, wantSize: 4},
		"Limit":       {reason: "The limit is never passed.", items: []time.Duration{1, 1, 1, 1, 1}, wantSize: 6},
		"Hung":        {reason: "An item that hung closes it.", items: []time.Duration{1, 1, 1, hungAfter}, wantSize: 1, wantPenalised: true},
		"Penalty":     {reason: "What ends in time does not shorten the penalty.", items: []time.Duration{hungAfter, time.Second, time.Second}, wantSize: 1, wantPenalised: true},
		"PenaltyOver": {reason: "After the penalty the cluster is as good as a new one.", items: []time.Duration{hungAfter, -penaltyFactor * hungAfter, 1}, wantSize: 2},
		"Bounded":     {reason: "No penalty is longer than the longest.", items: []time.Duration{time.Hour, -maxPenalty, 1}, wantSize: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, now := newWindow(6), start
			for _, d := range tc.items {
				now = now.Add(max(d, -d))
				switch {
				case d < 0:
				case d < hungAfter:
					w.ended(now)
				default:
					w.hung(now, d)
				}
			}
			if w.size != tc.wantSize || w.penalised(now) != tc.wantPenalised {
				t.Errorf("%s\nwant size %d, penalised %v; got %d, %v", tc.reason, tc.wantSize, tc.wantPenalised, w.size, w.penalised(now))
			}
		})
	}
}

// TestNewClustersThatHangTakeOneWorkerEach: 24 clusters with many items that are enrolled at once and hang once took
// all 64 workers.
func TestNewClustersThatHangTakeOneWorkerEach(t *testing.T) {
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 64, MaxInFlightPerCluster: 8})
	q.fill(g, 50, names("hostile", 24)...)
	for name, n := range q.takeAll() {
		if n != 1 {
			t.Errorf("cluster %q has %d items in flight, before one has ended", name, n)
		}
	}
	q.fill(g, 1, "honest")
	if got := q.takeAll(); got["honest"] != 1 {
		t.Errorf("an honest cluster is served at once: took %v", got)
	}
}

// TestClustersThatBeginToHangHoldNoWorkerForLong has clusters that earned their windows, occupy all workers, and never
// answer again.
func TestClustersThatBeginToHangHoldNoWorkerForLong(t *testing.T) {
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 8, MaxInFlightPerCluster: 2})
	hostile := names("hostile", 20)
	q.fill(g, 50, hostile...)
	q.trust()
	if got := q.takeAll(); len(got) != 8 {
		t.Fatalf("the turns go round: took %v", got)
	}
	q.fill(g, 10, "honest")
	q.trust()

	// A worker waits, and only the clock wakes it.
	var served atomic.Bool
	done := make(chan mcr.ClusterName, 1)
	go func() {
		for {
			item, shutdown := q.Get()
			if shutdown {
				return
			}
			if item.ClusterName == "honest" {
				served.Store(true)
				done <- item.ClusterName
				return
			}
		}
	}()
	eventually(t, "the timer does not wait for the first item to hang", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.watchesLanes && q.clock.HasWaiters()
	})
	if served.Load() {
		t.Fatal("all workers are taken")
	}
	eventually(t, "an honest cluster waits for those that hang", func() bool {
		q.clock.Step(hungAfter / 4)
		return served.Load()
	})
	<-done

	// As many items hang as there are workers: from here on no cluster gets more than one.
	q.takeAll()
	flying := map[mcr.ClusterName]int{}
	q.mu.Lock()
	total := len(q.processing)
	for item := range q.processing {
		flying[item.ClusterName]++
	}
	slow := q.lanes.slow
	q.mu.Unlock()
	if slow < 8 || total > 8*goroutinesPerWorker {
		t.Errorf("want at least 8 of at most 24 items in the slow lane, got %d of %d", slow, total)
	}
	for name, n := range flying {
		if n > 2 {
			t.Errorf("cluster %q has %d items in flight", name, n)
		}
	}
	for range 100 {
		item := request("honest", "again")
		q.Add(item)
		q.mu.Lock()
		for other, f := range q.processing { // The items of honest clusters end.
			if other.ClusterName == "honest" {
				f.started = q.clock.Now()
			}
		}
		q.mu.Unlock()
		for _, name := range []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "again"} {
			q.Done(request("honest", name))
		}
		q.clock.Step(hungAfter)
		if q.takeAll()["honest"] == 0 {
			t.Fatal("an honest cluster is not served while others hang")
		}
	}
}

// TestClustersWithAPenaltyShareTheSlowLane has far more clusters that hang than workers.
func TestClustersWithAPenaltyShareTheSlowLane(t *testing.T) {
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 4, MaxInFlightPerCluster: 2})
	hostile := names("hostile", 40)
	q.fill(g, 3, hostile...)
	// Each gets its penalty.
	for q.hasWork() {
		item, _ := q.Get()
		q.mu.Lock()
		penalised := q.subs[item.ClusterName].window.penalised(q.clock.Now())
		if !penalised {
			q.processing[item].started = q.clock.Now().Add(-time.Hour)
		}
		q.mu.Unlock()
		q.Done(item)
	}
	q.fill(g, 3, hostile...)
	if got := q.takeAll(); len(got) != 4 {
		t.Errorf("want one item each of 4 clusters in the slow lane, got %v", got)
	}
	q.fill(g, 3, "honest")
	if got := q.takeAll(); got["honest"] != 1 {
		t.Errorf("an honest cluster has the other lane for itself: took %v", got)
	}

	// The slow lane is fair, too: all get their turn.
	seen := map[mcr.ClusterName]bool{}
	for range 200 {
		q.mu.Lock()
		var one mcreconcile.Request
		for item, f := range q.processing {
			if f.lane == laneSlow {
				one = item
			}
		}
		q.mu.Unlock()
		seen[one.ClusterName] = true
		q.Done(one)
		q.Add(one)
		q.takeAll()
	}
	if len(seen) != len(hostile) {
		t.Errorf("want turns of all %d clusters, got those of %d", len(hostile), len(seen))
	}

	// The penalty ends, and the slow lane is full of items that hang: a cluster that recovers does not wait for those.
	got := make(chan mcr.ClusterName, 1)
	go func() {
		item, _ := q.Get()
		got <- item.ClusterName
	}()
	eventually(t, "the timer does not wait for a penalty to end", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.watchesLanes && q.clock.HasWaiters()
	})
	q.clock.Step(maxPenalty + time.Second)
	select {
	case <-got:
	case <-time.After(2 * time.Minute):
		t.Error("a cluster that has recovered waits for those that hang")
	}
	if q.standings()[hostile[0]].hanging {
		t.Error("the penalty does not end")
	}
}

// TestHubHasNoPenalty: no other cluster would be served instead.
func TestHubHasNoPenalty(t *testing.T) {
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: NewGate(), Workers: 8})
	for i := range 20 {
		q.Add(request(hub, fmt.Sprint(i)))
	}
	if got := q.takeAll()[hub]; got != 6 {
		t.Errorf("want all workers but a quarter, got %d", got)
	}
	q.clock.Step(time.Hour)
	for i := range 6 {
		q.Done(request(hub, fmt.Sprint(i)))
	}
	if got := q.takeAll()[hub]; got != 6 {
		t.Errorf("want all workers but a quarter after items that hung, got %d", got)
	}
}
