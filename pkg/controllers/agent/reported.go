// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// hubChanged is told that the object of a claim has changed in the hub. It returns whether the claim is to be queued: a
// change that is reported while the claim is reconciled waits for the end of that.
func (r *requirementReconciler) hubChanged(req request.Request, e kindwatch.Event) bool {
	if _, engaged := r.workloads.Get(req.ClusterName); !engaged {
		return true
	}
	now := r.clock.Now()
	if r.hold(req, e, ledger.Report{InHub: true, At: now}) {
		return false
	}
	r.metrics.HubChanged(req, now)
	return true
}

// claimChanged is told what the watch of a workload cluster reported of a claim. It returns whether that waits for the
// end of a reconcile. What was there before, what was written, and what somebody asks for does not wait.
func (r *requirementReconciler) claimChanged(req request.Request, e kindwatch.Event) (held bool) {
	changed, now := metrics.ChangesClaim(e), r.clock.Now()
	held = !e.SelfInduced && !e.Initial && !asks(e) && r.hold(req, e, ledger.Report{Changed: changed, At: now})
	if changed && !held {
		r.metrics.ClaimChanged(req, now)
	}
	return held
}

// hold keeps what a watch reported until the reconcile of the claim that is under way ends, if there is one. That an
// object has gone is never what a reconcile wrote, even if it went in the state that was written.
func (r *requirementReconciler) hold(req request.Request, e kindwatch.Event, report ledger.Report) bool {
	report.Version = ledger.VersionOf(e.Object)
	return e.Type != kindwatch.Deleted && r.reported.Hold(req, report)
}

// goOn has a claim looked at again after a reconcile if a watch has reported meanwhile what the reconcile did not write
// itself.
func (r *requirementReconciler) goOn(req request.Request, wrote []ledger.Version) {
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
