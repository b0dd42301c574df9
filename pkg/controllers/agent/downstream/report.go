// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// Reporter shows the state of claims to users: in the claims, and in events.
type Reporter struct {
	Clock   clock.PassiveClock
	Metrics *Metrics
	Ledger  *index.Ledger

	// Patience is how long the first status of a claim waits for the hub's, and its first late-initialized fields for the
	// others.
	Patience time.Duration
}

// Facts returns what DecideDown and DecideReport decide about.
func (r *Reporter) Facts(s *Scope, o Outcome) Facts {
	f := Facts{Facts: s.Facts, Outcome: o, Altered: s.Altered, Entry: r.Ledger.Entry(s.ObjectRequest), Now: r.Clock.Now(), Patience: r.Patience}
	f.Claim = s.Latest()
	return f
}

// Report writes to the claim what DecideReport decides, and an event if the result is new.
func (r *Reporter) Report(ctx context.Context, s *Scope, o Outcome) (reconcile.Result, error) {
	d := DecideReport(r.Facts(s, o))
	result := reconcile.Result{RequeueAfter: d.RequeueAfter}
	if err := r.annotate(ctx, s, d.Annotated); err != nil {
		return reconcile.Result{}, err
	}
	if d.New {
		// The workload cluster writes what the claim shows, and its texts must not become series. The last reason found stays
		// counted.
		r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) { e.Reason = d.Condition.Reason })
	}
	if s.AwaitsStatus = d.AwaitsStatus; d.AwaitsStatus {
		result.Priority = new(handler.LowPriority) // Claims that are not in the hub yet have priority.
	}
	if d.Status != nil {
		if err := r.writeStatus(ctx, s, d, o.Down.Object != nil); err != nil {
			return condition.Result(err)
		}
	}
	return result, nil
}

// writeStatus writes the status of a claim, and the event. shown means that the status has the hub's.
func (r *Reporter) writeStatus(ctx context.Context, s *Scope, d Report, shown bool) error {
	before, after := s.Latest(), propagation.Shell(s.Claim)
	patch, err := propagation.StatusPatch(before, d.Status)
	if err != nil {
		return err
	}
	err = s.Workload.Client.Status().Patch(ctx, after, patch, s.Workload.FieldOwner())
	if apierrors.IsNotFound(err) {
		return nil // It is gone, and there is nothing to report on.
	}
	err = hubaccess.WorkloadError(err, "write the status of this claim", fleetv1alpha1.ReasonWorkloadRejected)
	if p, ok := errors.AsType[*condition.Error](err); ok {
		// It can only be logged, not shown to the user.
		log.FromContext(ctx).Info("Cannot write the status of a claim", "reason", p.Reason, "message", p.Message)
		r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) { e.Reason = p.Reason })
	}
	if err != nil {
		return fmt.Errorf("cannot write the status of %s: %w", s.ObjectRequest, err)
	}
	dropped := propagation.StatusDiffers(after, d.Status)
	r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) {
		e.Pruned = index.PrunedStatus{}
		if dropped {
			e.Pruned = prunedStatus(after, d.Condition.Reason, d.Status)
		}
		if shown {
			r.Metrics.ObserveShown(s.ClusterName, e, s.Changes, r.Clock.Now())
		}
	})
	_ = s.ObserveClaim(after) // A cluster may answer with another object.
	r.Metrics.Wrote(s.ClusterName, WriteStatus)
	if d.Event != "" {
		s.Workload.Recorder.Eventf(before, nil, d.Event, d.Condition.Reason, "Synchronise", "%s", d.Condition.Message)
	}
	return nil
}
