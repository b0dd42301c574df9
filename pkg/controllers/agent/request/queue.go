// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
)

// A Queue lets those who watch something outside of a controller add to its queue, from before the controller has
// started. It is a source of the controller.
type Queue[R comparable] struct {
	mu      sync.Mutex
	q       workqueue.TypedRateLimitingInterface[R]
	backlog []R
}

var _ crsource.TypedSource[Request] = &Queue[Request]{}

// Start implements source.TypedSource.
func (e *Queue[R]) Start(_ context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.q = q
	for _, r := range e.backlog {
		q.Add(r)
	}
	e.backlog = nil
	return nil
}

// Add queues requests because of something that happened just now.
func (e *Queue[R]) Add(requests ...R) { e.addWithPriority(0, requests...) }

// AddInitial queues requests because of something that was there before we looked. What happens meanwhile goes first.
func (e *Queue[R]) AddInitial(requests ...R) { e.addWithPriority(handler.LowPriority, requests...) }

func (e *Queue[R]) addWithPriority(priority int, requests ...R) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.q == nil {
		e.backlog = append(e.backlog, requests...)
		return
	}
	if q, ok := e.q.(priorityqueue.PriorityQueue[R]); ok {
		q.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, requests...)
		return
	}
	for _, r := range requests {
		e.q.Add(r)
	}
}
