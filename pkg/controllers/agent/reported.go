// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// hubChanged queues a claim whose object has changed in the hub.
func (r *requirementReconciler) hubChanged(req multicluster.ObjectRequest, e kindwatch.Event) {
	now := r.clock.Now()
	r.queueOrHold(req, e, func() {
		if _, engaged := r.workloads.Get(req.ClusterName); engaged {
			r.ledger.Edit(req, func(entry *index.Entry) { entry.Changes.Hub = cmp.Or(entry.Changes.Hub, now) })
		}
		r.hub.Requirements.AddAhead(req)
	})
}

// claimChanged queues a claim that has changed in a workload cluster.
func (r *requirementReconciler) claimChanged(req multicluster.ObjectRequest, e kindwatch.Event) {
	// The objects of the event must not be kept with what is held.
	now, changes := r.clock.Now(), downstream.ChangesClaim(e)
	queue := func() {
		if changes {
			r.ledger.Edit(req, func(entry *index.Entry) { entry.Changes.Claim = cmp.Or(entry.Changes.Claim, now) })
		}
		r.hub.Requirements.Add(req)
	}
	if requestsReconcile(e) {
		r.noteReconcileRequest(req)
		queue() // Nothing that a reconcile wrote answers it.
		return
	}
	r.queueOrHold(req, e, queue)
}

// queueOrHold queues a claim, after its running reconcile if there is one, unless that made the change. A deletion is
// never a reconcile's own write, even if the object was deleted in the state that was written.
func (r *requirementReconciler) queueOrHold(req multicluster.ObjectRequest, e kindwatch.Event, queue func()) {
	if e.Type == kindwatch.Deleted || !r.reported.Hold(req, index.NewVersion(e.Object), queue) {
		queue()
	}
}

// queueHeld queues a claim after a reconcile if a watch has meanwhile reported a change that the reconcile did not
// make.
func (r *requirementReconciler) queueHeld(req multicluster.ObjectRequest, wrote []index.Version) {
	for _, queue := range r.reported.End(req, wrote) {
		queue()
	}
}
