// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// NewHubQueue returns controller-runtime's priority queue without its deadlock at shutdown, for controllers without a
// fair queue. Its signature is that of controller.TypedOptions.NewQueue.
//
// In controller-runtime before v0.25 (issue 3538) a worker that waits for an item can leave at ShutDown while the item
// is being handed to it. The sender then blocks for ever with the queue's locks held, the other workers never end, and
// the manager ends only after its grace period, and does not release its lease. Rejected alternatives are an upgrade
// (no multicluster-runtime release for v0.25 is tested here), a queue without priorities (dead clusters must not delay
// others), and a copy of the queue (it would have to be maintained).
//
// It guarantees that after ShutDown every call returns at once, regardless of what happens in the queue. Calls that
// hang there leave goroutines behind until the process ends.
func NewHubQueue[T comparable](name string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	inner := priorityqueue.New(name, func(o *priorityqueue.Opts[T]) { o.RateLimiter = limiter })
	q := &hubQueue[T]{PriorityQueue: inner, down: make(chan struct{})}
	q.end = sync.OnceFunc(func() {
		close(q.down)
		inner.ShutDown() // It takes no lock.
	})
	return q
}

type hubQueue[T comparable] struct {
	priorityqueue.PriorityQueue[T]

	// down is closed before the queue is shut down.
	down chan struct{}
	end  func()
}

type gotten[T comparable] struct {
	item     T
	priority int
	shutdown bool
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (q *hubQueue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	g, ok := unlessDown(q.down, func() (g gotten[T]) {
		g.item, g.priority, g.shutdown = q.PriorityQueue.GetWithPriority()
		return g
	})
	return g.item, g.priority, g.shutdown || !ok
}

// Get implements workqueue.TypedInterface.
func (q *hubQueue[T]) Get() (item T, shutdown bool) {
	item, _, shutdown = q.GetWithPriority()
	return item, shutdown
}

// Done implements workqueue.TypedInterface.
func (q *hubQueue[T]) Done(item T) {
	unlessDown(q.down, func() struct{} {
		q.PriorityQueue.Done(item)
		return struct{}{}
	})
}

// Len implements workqueue.TypedInterface. It is 0 after shutdown.
func (q *hubQueue[T]) Len() int {
	n, _ := unlessDown(q.down, q.PriorityQueue.Len)
	return n
}

// ShutDown implements workqueue.TypedInterface.
func (q *hubQueue[T]) ShutDown() { q.end() }

// ShutDownWithDrain implements workqueue.TypedInterface. Like controller-runtime's it waits for nothing.
func (q *hubQueue[T]) ShutDownWithDrain() { q.end() }

// unlessDown returns the result of a call that takes locks of the queue, unless the queue is shut down first.
func unlessDown[R any](down <-chan struct{}, call func() R) (result R, ok bool) {
	select {
	case <-down:
		return result, false
	default:
	}
	returned := make(chan R, 1)
	go func() { returned <- call() }()
	select {
	case result = <-returned:
		return result, true
	case <-down:
		return result, false
	}
}
