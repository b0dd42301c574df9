// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// reportMetrics counts what is reported to users.
type reportMetrics interface {
	// Requirement counts a claim by its condition's reason. An empty reason stops counting it.
	Requirement(req multicluster.ObjectRequest, reason string)
	Writes
	// ObserveShown records that the claim now shows a change of the hub's object.
	ObserveShown(req multicluster.ObjectRequest, seen Changes, now time.Time)
}

// Reporter reports the state of claims to users.
type Reporter struct {
	Clock   clock.PassiveClock
	Metrics reportMetrics
	Ledger  *index.Ledger

	// Patience is how long the first status of a claim waits for the hub's; see propagation.AwaitsFirstStatus.
	Patience time.Duration
}

// Report writes the result to the claim: the hub's status and our condition, and an event if the result is new. It does
// not repeat writes.
func (r *Reporter) Report(ctx context.Context, s *Scope, o Outcome) (reconcile.Result, error) {
	result := reconcile.Result{RequeueAfter: o.RetryAfter}
	if o.Silent {
		return result, nil
	}
	c := agentSynced(s, o)
	if o.KeepCondition {
		shown, found := propagation.ShownAgentSynced(s.Claim)
		if !found {
			return result, nil
		}
		c = shown
		// The hub's object still matches the claim if it did, and the claim has not changed since.
		o.Current = o.Current || shown.Status == metav1.ConditionTrue && shown.ObservedGeneration == s.Claim.GetGeneration()
	} else if err := r.noteConflict(ctx, s, o.Holder); err != nil {
		return reconcile.Result{}, err
	}
	if !o.KeepCondition {
		// The workload cluster writes what the claim shows, and its texts must not become series. The last reason found stays
		// counted.
		r.Metrics.Requirement(s.ObjectRequest, c.Reason)
	}
	now := r.Clock.Now()
	if o.Problem == nil && !o.KeepCondition {
		if left := propagation.AwaitsFirstStatus(s.Claim, o.Hub, now, r.Patience); left > 0 {
			s.AwaitsStatus = true
			// Claims that are not in the hub yet have priority.
			return reconcile.Result{RequeueAfter: left, Priority: new(handler.LowPriority)}, nil
		}
	}
	status := propagation.BuildStatus(s.Claim, o.Hub, o.Current, c, now)
	if !propagation.StatusDiffers(s.Claim, status) || r.statusPruned(s, c, status) {
		return result, nil
	}
	if err := r.writeStatus(ctx, s, o, c, status); err != nil {
		return condition.Result(err)
	}
	return result, nil
}

// agentSynced returns the claim's condition AgentSynced.
func agentSynced(s *Scope, o Outcome) metav1.Condition {
	c := propagation.Condition(s.Claim, o.Problem)
	if o.Problem == nil && s.Altered != "" {
		c.Message = "The hub holds this claim, except for " + multicluster.BoundedText(s.Altered) +
			", which its admission or schema changes."
	}
	return c
}

// writeStatus writes the status of a claim, and an event if it is new.
func (r *Reporter) writeStatus(ctx context.Context, s *Scope, o Outcome, c metav1.Condition, status map[string]any) error {
	last, reportedBefore := r.lastReported(s)
	before, after := s.Claim, propagation.Shell(s.Claim)
	patch, err := propagation.StatusPatch(before, status)
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
		r.Metrics.Requirement(s.ObjectRequest, p.Reason)
	}
	if err != nil {
		return fmt.Errorf("cannot write the status of %s: %w", s.ObjectRequest, err)
	}
	r.rememberPruned(s, after, c, status)
	s.ObserveClaim(after)
	if after.GetUID() == before.GetUID() { // A cluster may answer with another object.
		s.Claim = after
	}
	r.Metrics.Wrote(s.ClusterName, WriteStatus)
	if o.Hub != nil {
		r.Metrics.ObserveShown(s.ObjectRequest, s.Changes, r.Clock.Now())
	}

	switch {
	case reportedBefore && last == c.Reason:
	case c.Reason == fleetv1alpha1.ReasonReconcilePaused:
		s.Workload.Recorder.Eventf(before, nil, corev1.EventTypeNormal, c.Reason, "Synchronise", "%s", c.Message)
	case o.Problem != nil && c.Reason != fleetv1alpha1.ReasonDeleting:
		s.Workload.Recorder.Eventf(before, nil, corev1.EventTypeWarning, c.Reason, "Synchronise", "%s", c.Message)
	case o.Problem == nil && reportedBefore:
		s.Workload.Recorder.Eventf(before, nil, corev1.EventTypeNormal, c.Reason, "Synchronise", "%s", c.Message)
	}
	return nil
}

// Forget is called when a claim is gone.
func (r *Reporter) Forget(req multicluster.ObjectRequest) { r.Metrics.Requirement(req, "") }
