// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// newQueue returns a queue without priorities. They are strict: as long as there is something of a higher one, nothing
// of a lower one is served, so that enough healthy clusters would keep those that failed from coming back, and those of
// the first list from being connected. What costs something is shared out by the admission.
func newQueue(name string, limiter workqueue.TypedRateLimiter[Key]) workqueue.TypedRateLimitingInterface[Key] {
	q, ok := multicluster.NewHubQueue(name, limiter).(priorityqueue.PriorityQueue[Key])
	if !ok {
		panic("the hub's queue has no priorities")
	}
	return &levelQueue{PriorityQueue: q}
}

type levelQueue struct {
	priorityqueue.PriorityQueue[Key]
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *levelQueue) AddWithOpts(o priorityqueue.AddOpts, items ...Key) {
	o.Priority = nil
	q.PriorityQueue.AddWithOpts(o, items...)
}
