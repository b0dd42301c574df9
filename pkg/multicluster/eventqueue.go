// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
)

// aheadPriority is positive, which the fair queue treats as "ahead of the others, but not of all of them".
const aheadPriority = 1

// An EventQueue lets watches outside of a controller add to its queue, even before the controller has started. It is a
// source of the controller.
type EventQueue[R comparable] struct {
	mu      sync.Mutex
	q       workqueue.TypedRateLimitingInterface[R]
	backlog []R
}

var _ crsource.TypedSource[ObjectRequest] = &EventQueue[ObjectRequest]{}

// Start implements source.TypedSource.
func (e *EventQueue[R]) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.q = q
	for _, r := range e.backlog {
		q.Add(r)
	}
	e.backlog = nil
	return nil
}

// Add queues requests because of a live event.
func (e *EventQueue[R]) Add(requests ...R) { e.add(0, 0, requests...) }

// AddAfter is Add after a delay. Before the controller has started, the delay is ignored.
func (e *EventQueue[R]) AddAfter(after time.Duration, requests ...R) { e.add(0, after, requests...) }

// AddAhead queues requests because of a live event in the hub: the claim was pushed before, and its user waits for the
// result. Within its cluster it precedes claims still to be pushed, so that a cluster with many new claims shows the
// status of the first ones while the last ones are still pushed.
func (e *EventQueue[R]) AddAhead(requests ...R) { e.add(aheadPriority, 0, requests...) }

// AddInitial queues requests because of existing objects. Live events go first.
func (e *EventQueue[R]) AddInitial(requests ...R) { e.add(handler.LowPriority, 0, requests...) }

// ForgetFailures resets the back-off of a request.
func (e *EventQueue[R]) ForgetFailures(request R) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.q != nil {
		e.q.Forget(request)
	}
}

func (e *EventQueue[R]) add(priority int, after time.Duration, requests ...R) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.q == nil {
		e.backlog = append(e.backlog, requests...)
		return
	}
	if q, ok := e.q.(priorityqueue.PriorityQueue[R]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: after}, requests...)
		return
	}
	for _, r := range requests {
		e.q.AddAfter(r, after)
	}
}
