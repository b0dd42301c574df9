// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// NewHubQueue returns controller-runtime's priority queue, for controllers whose requests are not shared out among
// clusters, without its deadlock at shutdown. It has the form that controller.TypedOptions.NewQueue asks for.
//
// In controller-runtime before v0.25 (issue 3538) a worker that waits for an item can leave at ShutDown while the item
// is being handed to it. Whoever hands it over then waits for ever and holds the locks of the queue, the other workers
// never end, and neither does the manager before its grace period does, which also keeps it from giving its lease back.
// To upgrade, to use a queue without priorities and to keep a copy of the queue were rejected: multicluster-runtime has
// no release for v0.25 that is tested here, dead clusters must not be in the way of others, and a copy would have to be
// looked after.
//
// What it guarantees: after ShutDown every call returns at once, whatever happens in the queue. What hangs there hangs
// in goroutines of nobody, as long as the process lives.
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

// Len implements workqueue.TypedInterface. It is 0 for one that was shut down.
func (q *hubQueue[T]) Len() int {
	n, _ := unlessDown(q.down, q.PriorityQueue.Len)
	return n
}

// ShutDown implements workqueue.TypedInterface.
func (q *hubQueue[T]) ShutDown() { q.end() }

// ShutDownWithDrain implements workqueue.TypedInterface. Like controller-runtime's it waits for nothing.
func (q *hubQueue[T]) ShutDownWithDrain() { q.end() }

// unlessDown returns what a call returns that takes locks of the queue, unless the queue is shut down before.
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
