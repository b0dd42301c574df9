// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// Coalescing is the minimum interval between two reconciles of one Application. The first change is handled at once.
const Coalescing = 200 * time.Millisecond

func (w *Cluster) request(key record.ApplicationKey) mcreconcile.Request {
	return mcreconcile.Request{ClusterName: w.Name, Request: reconcile.Request{NamespacedName: key}}
}

// Enqueue queues the cluster itself. It does not block.
func (w *Cluster) Enqueue() { w.queue.Add(w.request(record.ApplicationKey{})) }

// Wake queues Applications: at once, or as soon as coalescing allows. Unknown Applications are ignored.
func (w *Cluster) Wake(keys ...record.ApplicationKey) { w.wakeWith(0, keys...) }

// WakeLater queues Applications for a reason that applies to many. Events of individual Applications take precedence.
func (w *Cluster) WakeLater(keys ...record.ApplicationKey) { w.wakeWith(handler.LowPriority, keys...) }

func (w *Cluster) wakeWith(priority int, keys ...record.ApplicationKey) {
	for _, key := range keys {
		at, _, known := w.LastLook(key)
		if !known {
			continue
		}
		var after time.Duration
		if !at.IsZero() {
			after = max(0, Coalescing-w.Clock.Since(at))
		}
		if q, ok := w.queue.(priorityqueue.PriorityQueue[mcreconcile.Request]); ok {
			q.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: &priority}, w.request(key))
			continue
		}
		w.queue.AddAfter(w.request(key), after)
	}
}

// LastLook returns when the last reconcile of an Application began, zero if the next one need not be delayed, and
// whether its status waits for a pending observation. known reports whether the cluster has it.
func (w *Cluster) LastLook(key record.ApplicationKey) (at time.Time, waits, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.applications[key]
	if t == nil {
		return time.Time{}, false, false
	}
	return t.started, !t.settlingSince.IsZero(), true
}
