// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Reconcile synchronises one claim with its object in the hub. It gathers facts, makes a plan, applies its steps, and
// propagates the hub's state down whether or not the steps succeeded.
func (r *requirementReconciler) Reconcile(ctx context.Context, req multicluster.ObjectRequest) (reconcile.Result, error) {
	defer r.forgetGone(req) // It runs last: what runs before may note state of a cluster that is gone.
	var wrote []index.Version
	r.reported.Begin(req)
	defer func() { r.queueHeld(req, wrote) }()
	r.resetBackOff(req)
	seen := r.ledger.Entry(req).Changes
	s, err := r.gatherFacts(ctx, req)
	if err != nil {
		return condition.Result(err)
	}
	s.Changes = seen
	o := downstream.Outcome{Plan: plan.Plan{Down: plan.Down{Object: s.Own()}}}
	if ctx, err = r.authenticate(ctx, s); err == nil {
		o, err = r.apply(ctx, s, plan.Decide(s.Facts))
	}
	if moves := o.Problem != nil && o.Problem.Reason == fleetv1alpha1.ReasonMoving; !moves {
		r.hub.LeaveRoom(newOrigin(req, s.Source.Identifier)) // What moves keeps it for the new object.
	}
	result, err := r.propagateDown(ctx, s, o, err)
	wrote = s.Wrote
	if err == nil {
		if s.AwaitsStatus {
			seen.Hub = time.Time{}
		}
		r.ledger.Edit(req, func(e *index.Entry) { e.Changes.Settle(seen) })
	}
	return result, multicluster.AsForeign(err)
}

// propagateDown propagates the hub's state down, and reports the result to the user. Each is done regardless of the
// other's result, unless an error keeps the reconcile from going on (mayContinue).
func (r *requirementReconciler) propagateDown(ctx context.Context, s *downstream.Scope, o downstream.Outcome, err error) (reconcile.Result, error) {
	if s.HubKind != s.Kind {
		o.Down.Object = nil // Another version has other fields.
	}
	d := downstream.DecideDown(r.reports.Facts(s, o))
	if mayContinue(err) {
		err = errors.Join(err, r.bringDown(ctx, s, &o, d))
	}
	result, failure := r.reportStatus(ctx, s, o, err)
	if !d.Secrets || d.Record != "" || s.AwaitsStatus || !mayContinue(err) || failure != nil {
		return result, failure
	}
	// The status can imply the record. That of another object no longer does.
	record, left := downstream.DecideRecord(r.reports.Facts(s, o))
	again, err := condition.Result(r.reports.Record(ctx, s, o.Down.Object, record)) // The next reconcile reports a refusal.
	result.RequeueAfter = condition.MinNonZero(result.RequeueAfter, condition.MinNonZero(left, again.RequeueAfter))
	return result, err
}

// mayContinue reports whether the rest of a reconcile may continue after an error.
func mayContinue(err error) bool {
	return !hubaccess.IsUnauthorized(err) && !hubaccess.IsConflict(err) && !hubaccess.IsUnanswered(err)
}

// reportStatus reports the result of a reconcile to the user, and returns when to retry. A lasting error is reported.
// While an error may be transient, the hub's status is shown beside the current condition, unless the cluster has just
// not responded.
func (r *requirementReconciler) reportStatus(ctx context.Context, s *downstream.Scope, o downstream.Outcome, err error) (reconcile.Result, error) {
	switch {
	case hubaccess.IsUnauthorized(err):
		// The credentials may have been replaced since they were read.
		r.identities.Reject(ctx)
		return reconcile.Result{RequeueAfter: condition.Soon}, nil
	case err != nil:
		if !downstream.IsTellable(ctx, s, err) {
			if hubaccess.IsConflict(err) {
				// What was read for the conflict is no news of the watch, and failures before it can make the back-off long.
				r.hub.Requirements.AddAfter(condition.Soon, s.ObjectRequest)
			}
			return reconcile.Result{}, err
		}
		lasting, isLasting := errors.AsType[*condition.Error](r.reports.Failed(s, err))
		if !isLasting && hubaccess.IsUnanswered(err) {
			return reconcile.Result{}, err
		}
		o.SkipReport, o.Problem, o.Holder, o.KeepCondition = false, lasting, "", !isLasting
		_, reportErr := r.reports.Report(ctx, s, o)
		return reconcile.Result{}, errors.Join(err, reportErr)
	}
	r.reports.Succeeded(s.ObjectRequest)
	result, err := r.reports.Report(ctx, s, o)
	if err == nil && o.Err != nil {
		return reconcile.Result{}, o.Err
	}
	return result, err
}
