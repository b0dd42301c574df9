// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

const (
	// reservedShare defines the part of the workers (one in reservedShare, at least one) that a single workload cluster
	// may occupy by default, and that the hub always leaves to the workload clusters.
	reservedShare = 4

	// The back-off of an item is that of controller-runtime's priority queue.
	defaultBaseDelay = 5 * time.Millisecond
	defaultMaxDelay  = 1000 * time.Second
)

// FairQueueOptions configure a fair queue. The zero value works.
type FairQueueOptions[R mcreconcile.ClusterAware[R]] struct {
	// Gate decides which clusters' items are dropped, held or dispatched. Without one, all are dispatched.
	Gate *Gate

	// Workers is how many items of responsive clusters may be in flight; it sets the default limits. It is 1 by default.
	// goroutinesPerWorker times as many goroutines should take items from the queue.
	Workers int

	// MaxInFlightPerCluster is how many items of one workload cluster may be in flight. The default is a quarter of the
	// workers, at least one. It does not apply to the hub.
	MaxInFlightPerCluster int

	// RateLimiter delays AddRateLimited. The default is an exponential back-off per item from 5 ms to 1000 s.
	RateLimiter workqueue.TypedRateLimiter[R]

	// Metrics, if set, publishes the depth and the waiting time of the queue.
	Metrics *Metrics

	// Clock is the real one by default.
	Clock clock.Clock
}

// NewFairQueue returns a queue for the requests of many clusters that is fair to each of them. It starts one goroutine,
// which ends at ShutDown.
//
// It works around these properties of multicluster-runtime v0.24.1 with controller-runtime's queue:
//
//   - there is one queue for all clusters with no fairness between them (the pull request "WIP fair queue",
//     kubernetes-sigs/multicluster-runtime#1, was abandoned; kubernetes-sigs/controller-runtime#3261 is open), so that
//     enrolling one big cluster delays every other cluster's events by the whole of its initial list, and one hanging
//     cluster takes all workers;
//   - the items of a cluster that went away stay in the queue, and workers drain them one by one.
//
// It guarantees:
//
//   - Turns: clusters that have work are served in turn, one item each (deficit round robin with a quantum of one). An
//     item of a cluster with an empty queue waits for at most one item of every other cluster per free worker.
//   - Limit: no workload cluster has more than MaxInFlightPerCluster items in flight, even if it is the only one that
//     has work. Lending idle workers was rejected: reconciles of a hanging cluster last until their timeout, and the
//     lent workers would be missing for as long when another cluster has work. Configure more workers for more
//     throughput of a single cluster. Up to that limit a cluster earns its share (window): it begins with one item in
//     flight, and falls back to one when an item hangs.
//   - Lanes: clusters whose items hang have separate workers, and a hanging item releases its worker to the others
//     (lanes). A healthy cluster waits for their workers for at most two seconds, unless more clusters than twice the
//     number of workers begin to hang within the time that one request may take.
//   - The hub has no penalty. It may use all but a quarter of the workers (all but one if there are fewer than eight,
//     the only one if there is just one), because in some controllers every request is the hub's.
//   - Order: priorities apply within one cluster only: a cluster cannot get ahead of another by raising them. Equal
//     priorities are FIFO. One in four turns is reserved for items without a positive priority, so that others cannot
//     starve them. An item that is added with a delay loses a positive priority.
//   - Never two workers on one item: an item that is added while in flight is dispatched again after Done. Adding again
//     keeps the highest priority and the shortest delay.
//   - The Gate takes effect at once. No item of a known cluster is lost while its gate is closed.
//
// Every operation is O(log n) in the number of queued items; Forget of a cluster is O(its items * log n). Unlike
// controller-runtime's queue, Add takes effect before it returns.
func NewFairQueue[R mcreconcile.ClusterAware[R]](name string, o FairQueueOptions[R]) priorityqueue.PriorityQueue[R] {
	q := newFairQueue(name, o)
	if q.gate != nil {
		q.gate.join(q)
	}
	q.metrics.addQueue(name, q)
	go q.runTimer()
	return q
}

func newFairQueue[R mcreconcile.ClusterAware[R]](name string, o FairQueueOptions[R]) *fairQueue[R] {
	workers := max(1, o.Workers)
	reserved := max(1, workers/reservedShare)
	q := &fairQueue[R]{
		name:         name,
		gate:         o.Gate,
		limiter:      o.RateLimiter,
		metrics:      o.Metrics,
		clock:        o.Clock,
		hubLimit:     max(1, workers-reserved),
		clusterLimit: o.MaxInFlightPerCluster,
		subs:         map[mcr.ClusterName]*subQueue[R]{},
		processing:   map[R]*flight[R]{},
		waiting:      newEntryHeap(becomesDueBefore[R]),
		earlier:      make(chan struct{}, 1),
		done:         make(chan struct{}),
	}
	if q.clusterLimit <= 0 {
		q.clusterLimit = reserved
	}
	if q.limiter == nil {
		q.limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[R](defaultBaseDelay, defaultMaxDelay)
	}
	if q.clock == nil {
		q.clock = clock.RealClock{}
	}
	q.lanes.init(workers)
	q.available.L = &q.mu
	q.drained.L = &q.mu
	return q
}

type fairQueue[R mcreconcile.ClusterAware[R]] struct {
	name         string
	gate         *Gate
	limiter      workqueue.TypedRateLimiter[R]
	metrics      *Metrics
	clock        clock.Clock
	hubLimit     int
	clusterLimit int

	// mu guards what follows. The Gate calls the queue with its own lock held, so the Gate must not be called with mu
	// held.
	mu sync.Mutex
	// available is signalled when a cluster waits for its turn and when a worker is free again. A worker that takes an
	// item while clusters wait signals the next one, so no count is needed.
	available sync.Cond
	// drained is signalled when the last item in flight is done.
	drained sync.Cond
	// subs has the clusters that are known or still have an item in flight.
	subs map[mcr.ClusterName]*subQueue[R]
	// lanes have the clusters that wait for their turn, and the items in flight.
	lanes lanes[R]
	// processing are the items in flight.
	processing map[R]*flight[R]
	// waiting are the delayed entries of all clusters.
	waiting entryHeap[R]
	// due is the number of entries that are not waiting.
	due      int
	seq      uint64
	shutdown bool
	// watchesLanes reports whether the timer fires when the next item hangs or the next penalty ends.
	watchesLanes bool

	// earlier signals the timer that the first delayed entry has changed.
	earlier chan struct{}
	// done is closed at shutdown.
	done chan struct{}
}

// Add implements workqueue.TypedInterface.
func (q *fairQueue[R]) Add(item R) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *fairQueue[R]) AddAfter(item R, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *fairQueue[R]) AddRateLimited(item R) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *fairQueue[R]) AddWithOpts(o priorityqueue.AddOpts, items ...R) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutdown {
		return
	}
	for _, item := range items {
		if sub := q.subFor(item.Cluster()); sub != nil {
			q.add(sub, item, q.delay(sub, item, o), addPriority(o))
		}
	}
}

// addPriority returns the requested priority, but drops a positive one of a delayed item, which is no longer urgent.
// controller-runtime requeues items with their last priority, so that an item that was ahead once would stay ahead for
// ever. Items delayed by the rate limiter have just failed, and keep theirs.
func addPriority(o priorityqueue.AddOpts) int {
	priority := ptr.Deref(o.Priority, 0)
	if o.After > 0 && !o.RateLimited {
		return min(priority, 0)
	}
	return priority
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *fairQueue[R]) GetWithPriority() (item R, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.shutdown {
		if sub := q.next(); sub != nil {
			e := q.take(sub)
			return e.item, e.priority, false
		}
		q.available.Wait()
	}
	return item, 0, true
}

// Get implements workqueue.TypedInterface.
func (q *fairQueue[R]) Get() (item R, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *fairQueue[R]) Done(item R) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f, ok := q.processing[item]
	if !ok {
		return
	}
	delete(q.processing, item)
	if len(q.processing) == 0 {
		q.drained.Broadcast()
	}

	now := q.clock.Now()
	sub := f.sub
	q.lanes.end(f, now)
	if e, ok := sub.entries[item]; ok && e.place == placeBehind {
		sub.behind--
		e.place = placeReady
		sub.ready.push(e)
	}
	if sub.inFlight == 0 && sub.idle != nil {
		close(sub.idle)
		sub.idle = nil
	}
	q.schedule(sub, now)
	q.retire(sub)
	// Another cluster may have waited for this worker.
	if q.lanes.waiting() {
		q.available.Signal()
	}
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *fairQueue[R]) Forget(item R) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limiter.Forget(item)
	if sub, ok := q.subs[item.Cluster()]; ok {
		delete(sub.limited, item)
		q.retire(sub)
	}
}

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *fairQueue[R]) NumRequeues(item R) int { return q.limiter.NumRequeues(item) }

// Len returns the number of items that are due and not in flight, including those held by a gate or waiting for their
// own reconcile to end.
func (q *fairQueue[R]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.due
}

// ShutDown makes every Get return at once. Queued items are dropped, as in controller-runtime's priority queue: after a
// restart the initial lists add them again.
func (q *fairQueue[R]) ShutDown() {
	q.mu.Lock()
	already := q.shutdown
	q.shutdown = true
	q.available.Broadcast()
	q.mu.Unlock()
	if already {
		return
	}
	close(q.done)
	if q.gate != nil {
		q.gate.leave(q)
	}
	q.metrics.removeQueue(q.name, q)
}

// ShutDownWithDrain is ShutDown, and waits until every item in flight is done.
func (q *fairQueue[R]) ShutDownWithDrain() {
	q.ShutDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.processing) > 0 {
		q.drained.Wait()
	}
}

// ShuttingDown implements workqueue.TypedInterface.
func (q *fairQueue[R]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shutdown
}
