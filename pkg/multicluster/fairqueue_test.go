// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// request returns a request for an object of a cluster.
func request(cluster mcr.ClusterName, name string) mcreconcile.Request {
	return mcreconcile.Request{
		ClusterName: cluster,
		Request:     reconcile.Request{NamespacedName: types.NamespacedName{Name: name}},
	}
}

// testQueue is a fair queue under a fake clock, with methods to inspect it.
type testQueue struct {
	*fairQueue[mcreconcile.Request]
	t     *testing.T
	clock *timerClock
}

// timerClock is a fake clock that knows when the last created timer fires.
type timerClock struct {
	*clocktesting.FakeClock
	fires atomic.Pointer[time.Time]
}

// NewTimer implements clock.Clock.
func (c *timerClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.fires.Store(new(c.Now().Add(d)))
	return timer
}

// firesBy reports whether the last created timer fires at a time or before.
func (c *timerClock) firesBy(at time.Time) bool {
	fires := c.fires.Load()
	return fires != nil && !fires.After(at)
}

func newTestQueue(t *testing.T, o FairQueueOptions[mcreconcile.Request]) *testQueue {
	t.Helper()
	c := &timerClock{FakeClock: clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	o.Clock = c
	q, ok := NewFairQueue("test", o).(*fairQueue[mcreconcile.Request])
	if !ok {
		t.Fatal("NewFairQueue returned something else")
	}
	t.Cleanup(q.ShutDown)
	return &testQueue{fairQueue: q, t: t, clock: c}
}

// ready trusts all clusters, and takes the items that can be taken without waiting, as "cluster/name@priority".
func (q *testQueue) ready() []string {
	q.t.Helper()
	q.trust()
	var got []string
	for q.hasWork() {
		item, priority, shutdown := q.GetWithPriority()
		if shutdown {
			q.t.Fatal("the queue is shut down")
		}
		got = append(got, fmt.Sprintf("%s/%s@%d", item.ClusterName, item.Name, priority))
	}
	return got
}

// drain takes what can be taken, and gives it back at once, so that no limit applies.
func (q *testQueue) drain() []string {
	q.t.Helper()
	var got []string
	for q.hasWork() {
		item, _ := q.Get()
		got = append(got, string(item.ClusterName)+"/"+item.Name)
		q.Done(item)
	}
	return got
}

func (q *testQueue) hasWork() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next() != nil
}

// trust opens the windows of all clusters, as if many of their items had ended in time.
func (q *testQueue) trust() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, sub := range q.subs {
		sub.window.size = sub.window.limit
		q.schedule(sub, q.clock.Now())
	}
}

// step moves the clock and waits until the timer has seen it.
//
// If the clock moves after the queue has read the time, and before it has created a timer from it, that timer is late
// by the whole step. A real clock does not jump; here the test makes the queue create another timer. A timer that
// exists in time is not replaced, so that one that is created for the wrong time, or fires in vain, is still found.
func (q *testQueue) step(d time.Duration) {
	q.t.Helper()
	timerIsInTime := func() bool {
		e := q.waiting.peek()
		if e == nil || q.clock.firesBy(e.readyAt) {
			return true
		}
		select {
		case q.earlier <- struct{}{}:
		default:
		}
		return false
	}
	eventually(q.t, "the timer does not wait for the first entry", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return timerIsInTime() && q.clock.HasWaiters()
	})
	q.clock.Step(d)
	eventually(q.t, "what is due is still delayed", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		e := q.waiting.peek()
		if e == nil || e.readyAt.After(q.clock.Now()) {
			return true
		}
		timerIsInTime()
		return false
	})
}

// eventually waits until a condition holds.
func eventually(t *testing.T, otherwise string, condition func() bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatal(otherwise)
		case <-tick.C:
		}
	}
}

func TestFairQueueOrder(t *testing.T) {
	cases := map[string]struct {
		reason string
		add    func(q *testQueue)
		want   []string
	}{
		"FIFO": {
			reason: "Equal priorities of one cluster are served in the order in which they came.",
			add: func(q *testQueue) {
				for _, n := range []string{"c", "a", "b"} {
					q.Add(request("x", n))
				}
			},
			want: []string{"x/c@0", "x/a@0", "x/b@0"},
		},
		"Turns": {
			reason: "Clusters take turns, one item each, however much one of them has queued before the others.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.Add(request("x", "2"))
				q.Add(request("x", "3"))
				q.Add(request("y", "1"))
				q.Add(request("z", "1"))
				q.Add(request("y", "2"))
			},
			want: []string{"x/1@0", "y/1@0", "z/1@0", "x/2@0", "y/2@0", "x/3@0"},
		},
		"PrioritiesInsideACluster": {
			reason: "A higher priority goes first, but only inside its cluster: y's turn comes all the same.",
			add: func(q *testQueue) {
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, request("x", "low"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(100)}, request("x", "high"), request("x", "high2"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, request("y", "low"))
			},
			want: []string{"x/high@100", "y/low@-100", "x/high2@100", "x/low@-100"},
		},
		"PositivePrioritiesDoNotStarveOthers": {
			reason: "After three items with a positive priority one of the others has its turn, however many there are.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, request("x", "low"))
				for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
					q.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, request("x", name))
				}
			},
			want: []string{"x/a@1", "x/b@1", "x/c@1", "x/1@0", "x/d@1", "x/e@1", "x/f@1", "x/low@-100", "x/g@1"},
		},
		"RaisedAhead": {
			reason: "An item that is queued already goes ahead of the others as soon as it is added with a positive priority.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.Add(request("x", "2"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, request("x", "2"))
			},
			want: []string{"x/2@1", "x/1@0"},
		},
		"Deduplicated": {
			reason: "An item that is queued already is not queued twice.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.Add(request("x", "1"))
			},
			want: []string{"x/1@0"},
		},
		"SameNameInTwoClusters": {
			reason: "Objects of the same name in two clusters are two items.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.Add(request("y", "1"))
			},
			want: []string{"x/1@0", "y/1@0"},
		},
		"KeepsTheHighestPriority": {
			reason: "Adding again raises the priority, never lowers it, and a raised item goes behind its equals.",
			add: func(q *testQueue) {
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-100)}, request("x", "raised"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(5)}, request("x", "equal"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(5)}, request("x", "raised"))
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-5)}, request("x", "equal"))
			},
			want: []string{"x/equal@5", "x/raised@5"},
		},
		"Delayed": {
			reason: "A delayed item is not served before its time.",
			add:    func(q *testQueue) { q.AddAfter(request("x", "1"), time.Minute) },
		},
		"DelayedBecomesDue": {
			reason: "Delayed items are served in the order in which they become due.",
			add: func(q *testQueue) {
				q.AddAfter(request("x", "3"), 3*time.Second)
				q.AddAfter(request("x", "1"), time.Second)
				q.AddAfter(request("x", "2"), 2*time.Second)
				q.AddAfter(request("x", "4"), time.Hour)
				q.step(3 * time.Second)
			},
			want: []string{"x/1@0", "x/2@0", "x/3@0"},
		},
		"ShortestDelayWins": {
			reason: "Adding again with another delay keeps the shorter of the two, whichever came first.",
			add: func(q *testQueue) {
				q.AddAfter(request("x", "1"), time.Hour)
				q.AddAfter(request("x", "1"), time.Second)
				q.AddAfter(request("x", "2"), time.Second)
				q.AddAfter(request("x", "2"), time.Hour)
				q.step(time.Second)
			},
			want: []string{"x/1@0", "x/2@0"},
		},
		"AddMakesDelayedDue": {
			reason: "An item that is added without a delay is due at once, with the higher of the two priorities.",
			add: func(q *testQueue) {
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, Priority: new(-7)}, request("x", "1"))
				q.Add(request("x", "1"))
			},
			want: []string{"x/1@0"},
		},
		"WhatWaitsIsNotAhead": {
			reason: "controller-runtime adds what is to be looked at again later with the priority that it had, and it is not ahead then.",
			add: func(q *testQueue) {
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Second, Priority: new(1)}, request("x", "again"))
				q.step(time.Second)
				q.AddWithOpts(priorityqueue.AddOpts{Priority: new(1)}, request("x", "news"))
			},
			want: []string{"x/news@1", "x/again@0"},
		},
		"WhatFailedStaysAhead": {
			reason: "An item that failed keeps its priority.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true, Priority: new(1)}, request("x", "failed"))
				q.step(defaultBaseDelay)
			},
			want: []string{"x/failed@1", "x/1@0"},
		},
		"DelayDoesNotPostpone": {
			reason: "An item that is due stays due when it is added with a delay.",
			add: func(q *testQueue) {
				q.Add(request("x", "1"))
				q.AddAfter(request("x", "1"), time.Hour)
			},
			want: []string{"x/1@0"},
		},
		"RateLimited": {
			reason: "The first failure waits for the base delay.",
			add: func(q *testQueue) {
				q.AddRateLimited(request("x", "1"))
				q.step(defaultBaseDelay)
			},
			want: []string{"x/1@0"},
		},
		"RateLimitedBacksOff": {
			reason: "The third failure waits for four times the base delay.",
			add: func(q *testQueue) {
				for range 2 {
					q.AddRateLimited(request("x", "1"))
					q.step(time.Hour)
					q.drain()
				}
				q.AddRateLimited(request("x", "1"))
				q.step(4*defaultBaseDelay - 1)
			},
		},
		"RateLimitedOrAfter": {
			reason: "Of a delay and the rate limiter's, the shorter counts, as in controller-runtime's queue.",
			add: func(q *testQueue) {
				q.AddWithOpts(priorityqueue.AddOpts{After: time.Hour, RateLimited: true}, request("x", "1"))
				q.step(defaultBaseDelay)
			},
			want: []string{"x/1@0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Workers: 100})
			tc.add(q)
			if diff := cmp.Diff(tc.want, q.ready()); diff != "" {
				t.Errorf("%s\nready: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFairQueueAddWhileInFlight(t *testing.T) {
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Workers: 100})
	item := request("x", "1")
	q.Add(item)
	if _, shutdown := q.Get(); shutdown {
		t.Fatal("the queue is shut down")
	}

	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(-3)}, item)
	q.AddWithOpts(priorityqueue.AddOpts{Priority: new(4)}, item)
	q.AddAfter(item, time.Hour)
	if got := q.ready(); got != nil {
		t.Errorf("an item that is in flight was handed out again: %v", got)
	}
	if got := q.Len(); got != 1 {
		t.Errorf("Len: want 1, got %d", got)
	}

	q.Done(item)
	if diff := cmp.Diff([]string{"x/1@4"}, q.ready()); diff != "" {
		t.Errorf("after Done, the item comes once, with its highest priority: -want, +got:\n%s", diff)
	}

	q.AddAfter(item, time.Second)
	q.step(time.Second)
	if got := q.ready(); got != nil {
		t.Errorf("a delayed item became due while it is in flight, and was handed out: %v", got)
	}
	q.Done(item)
	if diff := cmp.Diff([]string{"x/1@0"}, q.ready()); diff != "" {
		t.Errorf("after Done, the delayed item comes: -want, +got:\n%s", diff)
	}
	q.Done(item)
	q.Done(item) // This is once too often, which must do no harm.
	if q.inFlight("x") != 0 || q.Len() != 0 {
		t.Errorf("want nothing queued and nothing in flight, got %d and %d", q.Len(), q.inFlight("x"))
	}
}

func TestFairQueueLimits(t *testing.T) {
	cases := map[string]struct {
		reason  string
		workers int
		limit   int
		cluster mcr.ClusterName
		want    int
	}{
		"TwoWorkers":    {reason: "There must be one.", workers: 2, cluster: "x", want: 1},
		"ThreeWorkers":  {reason: "A quarter, but at least one.", workers: 3, cluster: "x", want: 1},
		"SixteenWorker": {reason: "A quarter, although no other cluster uses the rest.", workers: 16, cluster: "x", want: 4},
		"Set":           {reason: "What is set counts.", workers: 16, limit: 7, cluster: "x", want: 7},
		"HubTwoWorkers": {reason: "There must be one.", workers: 2, cluster: hub, want: 1},
		"HubFew":        {reason: "All but one.", workers: 3, cluster: hub, want: 2},
		"HubMany":       {reason: "All but a quarter.", workers: 16, cluster: hub, want: 12},
		"HubSet":        {reason: "The limit of workload clusters is not the hub's.", workers: 16, limit: 1, cluster: hub, want: 12},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Workers: tc.workers, MaxInFlightPerCluster: tc.limit})
			for i := range 50 {
				q.Add(request(tc.cluster, fmt.Sprint(i)))
			}
			if got := len(q.ready()); got != tc.want {
				t.Errorf("%s\nin flight: want %d, got %d", tc.reason, tc.want, got)
			}
			q.Add(request("other", "1"))
			if diff := cmp.Diff([]string{"other/1@0"}, q.ready()); diff != "" {
				t.Errorf("a cluster that wakes up is served: -want, +got:\n%s", diff)
			}
			q.Done(request(tc.cluster, "0"))
			if got := len(q.ready()); got != 1 {
				t.Errorf("after Done, one more is served: got %d", got)
			}
		})
	}
}

func TestFairQueueGate(t *testing.T) {
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 100})

	q.Add(request("x", "unknown"))
	q.AddRateLimited(request("x", "unknown"))
	q.Add(request(hub, "1"))
	if diff := cmp.Diff([]string{"/1"}, q.drain()); diff != "" {
		t.Errorf("what is added for an unknown cluster is dropped, the hub is always known: -want, +got:\n%s", diff)
	}
	if got := q.NumRequeues(request("x", "unknown")); got != 0 {
		t.Errorf("what is dropped leaves no back-off: want 0, got %d", got)
	}

	g.Close("x")
	q.Add(request("x", "held"))
	q.AddAfter(request("x", "later"), time.Second)
	q.step(time.Second)
	if got := q.ready(); got != nil {
		t.Errorf("what is added behind a closed gate is held: got %v", got)
	}
	if got := q.Len(); got != 2 {
		t.Errorf("Len counts what is held: want 2, got %d", got)
	}
	g.Open("x")
	if diff := cmp.Diff([]string{"x/held", "x/later"}, q.drain()); diff != "" {
		t.Errorf("nothing is lost, and the order is kept: -want, +got:\n%s", diff)
	}

	g.Close(hub)
	g.Forget(hub)
	q.Add(request(hub, "2"))
	if diff := cmp.Diff([]string{"/2"}, q.drain()); diff != "" {
		t.Errorf("the hub is always open: -want, +got:\n%s", diff)
	}
	if !g.IsOpen(hub) || !g.IsOpen("x") || g.IsOpen("y") {
		t.Error("IsOpen: want the hub and x to be open, and y not")
	}
}

func TestFairQueueJoinsGate(t *testing.T) {
	g := NewGate()
	g.Open("open")
	g.Close("closed")
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g})
	q.Add(request("open", "1"))
	q.Add(request("closed", "1"))
	q.Add(request("unknown", "1"))
	if diff := cmp.Diff([]string{"open/1"}, q.drain()); diff != "" {
		t.Errorf("a queue that is made later knows the gate's state: -want, +got:\n%s", diff)
	}
	if got := q.Len(); got != 1 {
		t.Errorf("Len: want the one that is held, got %d", got)
	}
}

func TestFairQueueForgetsCluster(t *testing.T) {
	g := NewGate()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[mcreconcile.Request](time.Second, time.Hour)
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 100, RateLimiter: limiter})
	g.Open("x")
	g.Open("y")

	q.Add(request("x", "busy"))
	q.Add(request("x", "terminal"))
	q.ready()
	q.AddRateLimited(request("x", "terminal")) // It fails, comes back, and fails terminally: Forget is not called.
	q.Done(request("x", "terminal"))
	q.step(time.Second)
	q.drain()
	q.Add(request("x", "ready"))
	q.Add(request("x", "busy"))
	q.AddAfter(request("x", "delayed"), time.Minute)
	q.AddRateLimited(request("x", "limited"))
	q.Add(request("y", "ready"))
	q.AddAfter(request("y", "delayed"), time.Minute)

	g.Forget("x")
	if got := q.Len(); got != 1 {
		t.Errorf("Len: want y's one item, got %d", got)
	}
	for _, name := range []string{"terminal", "limited"} {
		if got := limiter.NumRequeues(request("x", name)); got != 0 {
			t.Errorf("the back-off of %q is purged: want 0, got %d", name, got)
		}
	}
	if diff := cmp.Diff([]string{"y/ready"}, q.drain()); diff != "" {
		t.Errorf("x is purged, y is not: -want, +got:\n%s", diff)
	}
	if got := q.inFlight("x"); got != 1 {
		t.Errorf("what is in flight finishes: want 1, got %d", got)
	}
	q.AddRateLimited(request("x", "busy")) // Its reconcile fails.
	q.Done(request("x", "busy"))
	q.Forget(request("x", "busy"))
	q.step(time.Hour)
	if diff := cmp.Diff([]string{"y/delayed"}, q.drain()); diff != "" {
		t.Errorf("what was in flight is not requeued, and what was delayed is gone: -want, +got:\n%s", diff)
	}
	if _, ok := q.subs["x"]; ok {
		t.Error("the sub-queue of x is still there")
	}
	if len(q.processing) != 0 || q.waiting.len() != 0 || q.due != 0 {
		t.Errorf("want nothing left, got %d in flight, %d delayed, %d due", len(q.processing), q.waiting.len(), q.due)
	}
}

func TestFairQueueClusterComesBackWhileItemIsInFlight(t *testing.T) {
	g := NewGate()
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 8, MaxInFlightPerCluster: 2})
	g.Open("x")
	q.Add(request("x", "busy"))
	q.ready()

	g.Forget("x")
	g.Open("x")
	q.Add(request("x", "busy"))
	q.Add(request("x", "1"))
	q.Add(request("x", "2"))
	if diff := cmp.Diff([]string{"x/1@0"}, q.ready()); diff != "" {
		t.Errorf("an item in flight counts for the limit of the cluster that came back, and is not doubled: -want, +got:\n%s", diff)
	}
	q.Done(request("x", "busy"))
	if diff := cmp.Diff([]string{"x/busy@0"}, q.ready()); diff != "" {
		t.Errorf("what was added for the new cluster is not lost, and keeps its place: -want, +got:\n%s", diff)
	}
	q.Done(request("x", "1"))
	if diff := cmp.Diff([]string{"x/2@0"}, q.ready()); diff != "" {
		t.Errorf("the next in order follows: -want, +got:\n%s", diff)
	}
}

func TestFairQueueWithoutGateForgetsIdleClusters(t *testing.T) {
	q := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{})
	for i := range 1000 {
		item := request(mcr.ClusterName(fmt.Sprint(i)), "1")
		q.AddRateLimited(item)
		q.Add(item)
		if got, _ := q.Get(); got != item {
			t.Fatalf("want %v, got %v", item, got)
		}
		q.Forget(item)
		q.Done(item)
	}
	if got := len(q.subs); got != 0 {
		t.Errorf("sub-queues left: want 0, got %d", got)
	}
}

func TestGateWaitsUntilIdle(t *testing.T) {
	g := NewGate()
	q1 := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 4})
	q2 := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Gate: g, Workers: 4})
	g.Open("x")
	g.Open("y")
	for _, q := range []*testQueue{q1, q2} {
		q.Add(request("x", "1"))
		q.Add(request("x", "2"))
		q.Add(request("y", "1"))
		q.ready()
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	because := errors.New("because")
	cancel(because)
	if err := g.WaitIdle(ctx, "x"); !errors.Is(err, because) {
		t.Errorf("WaitIdle with an ended context: want its cause, got %v", err)
	}
	if !g.IsOpen("x") {
		t.Error("a drain that was called off must not close the gate afterwards")
	}
	g.Close("x")
	if err := g.WaitIdle(ctx, hub); err != nil {
		t.Errorf("the hub is not waited for: got %v", err)
	}
	if err := g.WaitIdle(t.Context(), "never-seen"); err != nil {
		t.Errorf("a cluster without work is idle: got %v", err)
	}

	drained := make(chan error)
	go func() { drained <- g.WaitIdle(t.Context(), "x") }()
	q1.Done(request("x", "1"))
	select {
	case err := <-drained:
		t.Fatalf("WaitIdle returned with an item in flight: %v", err)
	default:
	}
	if got := q1.ready(); got != nil {
		t.Errorf("a cluster whose gate is closed is served nothing: got %v", got)
	}
	q2.Done(request("x", "1"))
	if err := <-drained; err != nil {
		t.Errorf("WaitIdle: %v", err)
	}
	g.Open("x")
	if diff := cmp.Diff([]string{"x/2@0"}, q1.ready()); diff != "" {
		t.Errorf("what was queued is still there: -want, +got:\n%s", diff)
	}
}

func TestFairQueueShutDown(t *testing.T) {
	defer noLeak(t, goleak.IgnoreCurrent())
	g := NewGate()
	q := NewFairQueue("test", FairQueueOptions[mcreconcile.Request]{Gate: g})
	item := request(hub, "1")
	q.Add(item)
	if _, shutdown := q.Get(); shutdown {
		t.Fatal("the queue is shut down")
	}
	q.AddAfter(request(hub, "2"), time.Hour)

	waiting := make(chan bool)
	go func() {
		_, shutdown := q.Get()
		waiting <- shutdown
	}()
	drained := make(chan struct{})
	go func() {
		q.ShutDownWithDrain()
		close(drained)
	}()
	if shutdown := <-waiting; !shutdown {
		t.Error("a Get that waits returns at shutdown")
	}
	select {
	case <-drained:
		t.Error("ShutDownWithDrain returned with an item in flight")
	default:
	}
	q.Done(item)
	<-drained
	q.ShutDown() // Again.
	if !q.ShuttingDown() {
		t.Error("ShuttingDown: want true")
	}
	q.Add(request(hub, "3"))
	if _, _, shutdown := q.GetWithPriority(); !shutdown {
		t.Error("GetWithPriority after shutdown: want true")
	}
	if len(g.queues) != 0 {
		t.Error("the gate still knows the queue")
	}
	g.Open("x")
}

// TestUpstreamQueueLetsBigClusterGoFirst shows why fairness is needed.
func TestUpstreamQueueLetsBigClusterGoFirst(t *testing.T) {
	position := func(q priorityqueue.PriorityQueue[mcreconcile.Request]) int {
		defer q.ShutDown()
		for i := range 1000 {
			q.Add(request("big", fmt.Sprint(i)))
		}
		q.Add(request("small", "1"))
		for i := 0; ; i++ {
			item, _ := q.Get()
			q.Done(item)
			if item.ClusterName == "small" {
				return i
			}
		}
	}
	if got := position(priorityqueue.New[mcreconcile.Request]("")); got != 1000 {
		t.Errorf("controller-runtime's queue: the small cluster's item has position %d, not 1000; is the fair queue needed?", got)
	}
	if got := position(NewFairQueue("", FairQueueOptions[mcreconcile.Request]{})); got > 1 {
		t.Errorf("our queue: the small cluster's item has position %d, want 1 at most", got)
	}
}

// TestUpstreamQueueGivesAllWorkersToOneCluster shows why the limit is needed.
func TestUpstreamQueueGivesAllWorkersToOneCluster(t *testing.T) {
	const workers = 8
	fill := func(q priorityqueue.PriorityQueue[mcreconcile.Request]) {
		for i := range workers {
			q.Add(request("hanging", fmt.Sprint(i)))
		}
		q.Add(request("live", "1"))
	}
	upstream := priorityqueue.New[mcreconcile.Request]("")
	defer upstream.ShutDown()
	fill(upstream)
	for range workers {
		if item, _ := upstream.Get(); item.ClusterName == "live" {
			t.Error("controller-runtime's queue gave a worker to the live cluster; is the limit needed?")
		}
	}

	ours := newTestQueue(t, FairQueueOptions[mcreconcile.Request]{Workers: workers})
	fill(ours)
	want := []string{"hanging/0@0", "live/1@0", "hanging/1@0"}
	if diff := cmp.Diff(want, ours.ready()); diff != "" {
		t.Errorf("our queue: -want, +got:\n%s", diff)
	}
}
