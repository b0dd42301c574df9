// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// hubChanged is called when a claim's object changes in the hub. It returns whether to queue the claim: a change
// reported during a reconcile of the claim waits for its end.
func (r *requirementReconciler) hubChanged(req multicluster.ObjectRequest, e kindwatch.Event) bool {
	if _, engaged := r.workloads.Get(req.ClusterName); !engaged {
		return true
	}
	now := r.clock.Now()
	if r.holdEvent(req, e, index.Report{InHub: true, At: now}) {
		return false
	}
	r.metrics.HubChanged(req, now)
	return true
}

// claimChanged is called when the watch of a workload cluster reports a claim. It returns whether the event waits for
// the end of a reconcile. Initial events, our own writes and requested reconciles do not wait.
func (r *requirementReconciler) claimChanged(req multicluster.ObjectRequest, e kindwatch.Event) (held bool) {
	changed, now := downstream.ChangesClaim(e), r.clock.Now()
	held = !e.SelfInduced && !e.Initial && !requestsReconcile(e) && r.holdEvent(req, e, index.Report{Changed: changed, At: now})
	if changed && !held {
		r.metrics.ClaimChanged(req, now)
	}
	return held
}

// holdEvent keeps a watch event until the claim's running reconcile ends, if there is one. A deletion is never a
// reconcile's own write, even if the object was deleted in the state that was written.
func (r *requirementReconciler) holdEvent(req multicluster.ObjectRequest, e kindwatch.Event, report index.Report) bool {
	report.Version = index.NewVersion(e.Object)
	return e.Type != kindwatch.Deleted && r.reported.Hold(req, report)
}

// requeueHeldEvents requeues a claim after a reconcile if a watch has meanwhile reported a change that the reconcile
// did not make.
func (r *requirementReconciler) requeueHeldEvents(req multicluster.ObjectRequest, wrote []index.Version) {
	for _, report := range r.reported.End(req, wrote) {
		switch {
		case report.InHub:
			r.metrics.HubChanged(req, report.At)
			r.hub.Requirements.AddAhead(req)
		default:
			if report.Changed {
				r.metrics.ClaimChanged(req, report.At)
			}
			r.hub.Requirements.Add(req)
		}
	}
}
