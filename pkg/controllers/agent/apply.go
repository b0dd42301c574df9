// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
)

// apply executes the steps of a plan until one of them stops it.
func (r *requirementReconciler) apply(ctx context.Context, s *downstream.Scope, p plan.Plan) (downstream.Outcome, error) {
	await(r.hub, s, p)
	// Further changes of a claim without steps arrive as events.
	o := downstream.Outcome{Plan: p, KeepCondition: p.SkipReport && p.Down.Object != nil && len(p.Steps) == 0}
	if p.RequeueSlowly {
		o.RequeueAfter = condition.SlowRetry()
	}
	var inFlight time.Duration
	if slices.ContainsFunc(p.Steps, func(st plan.Step) bool { return st.Do == plan.AwaitCreations }) {
		inFlight = r.inFlight.Wait(s.ObjectRequest) // Before the hub is read: what is created meanwhile is found next time.
	}
	var adopted *unstructured.Unstructured
	for _, st := range p.Steps {
		if st.Do == plan.Push && adopted != nil {
			st.Saw = adopted
		}
		object, err := r.do(ctx, s, st, inFlight)
		switch {
		case err != nil:
			return stoppedBy(o, st, object, err)
		case st.Do == plan.Adopt:
			adopted = object
		case st.Do == plan.Push:
			o.Down.Object, o.Current = object, true
		}
	}
	return o, nil
}

// await requeues a claim when what its plan waits for changes.
func await(h *index.Hub, s *downstream.Scope, p plan.Plan) {
	switch {
	case p.Problem != nil && p.Problem == s.Full:
		h.Wait(index.Room(s.Source.Identifier), s.ObjectRequest)
	case p.WaitAt != nil:
		h.Wait(*p.WaitAt, s.ObjectRequest)
	default:
		h.StopWaiting(s.ObjectRequest)
	}
}

// stoppedBy returns the outcome of a plan that a step stopped, and any error that is not reported to users. The claim's
// known object still flows down.
func stoppedBy(o downstream.Outcome, st plan.Step, object *unstructured.Unstructured, err error) (downstream.Outcome, error) {
	stopped := downstream.Outcome{Plan: plan.Plan{SkipReport: condition.IsPending(err), Down: o.Down}}
	stopped.Down.Object = cmp.Or(object, o.Down.Object)
	if err := stopped.Note(err); err != nil {
		// The steps had to determine whether the problem may be disclosed.
		o.Problem, o.Holder = nil, ""
		return o, err
	}
	if st.Do == plan.Remove && st.To != nil && stopped.Problem != nil && stopped.Problem.Reason == fleetv1alpha1.ReasonDeleting {
		stopped.Problem = plan.Moving(st)
	}
	return stopped, nil
}

// do executes one step. It returns the hub object that it wrote or found correct, if the step is about one. An error
// stops the plan; the object beside it is the one to be shown. inFlight is how long a creation may still be in flight.
func (r *requirementReconciler) do(
	ctx context.Context, s *downstream.Scope, st plan.Step, inFlight time.Duration,
) (object *unstructured.Unstructured, err error) {
	switch st.Do {
	case plan.Protect:
		err = r.protect(ctx, s, st.At)
	case plan.Adopt:
		object, err = r.adopt(ctx, s, st.At, st.Saw)
	case plan.Push:
		object, err = r.push(ctx, s, st.At, st.Saw)
		r.awaitNamespace(s, st.At.Namespace, err)
	case plan.DryRunCreate:
		err = r.dryRunCreate(ctx, s, st.At)
		r.awaitNamespace(s, st.At.Namespace, err)
	case plan.CheckVisibility:
		err = r.disclose(ctx, s, st.At)
	case plan.Remove:
		r.hub.Wait(st.At, s.ObjectRequest) // It may be elsewhere than the claim's object.
		// An object beside no error may be another owner's, and is not shown.
		if object, err = r.removeAt(ctx, s, st); err == nil {
			object = nil
		}
	case plan.AwaitCreations:
		if inFlight > 0 {
			err = condition.PendingError{After: inFlight}
		}
	case plan.Release:
		err = r.release(ctx, s)
	case plan.Forget:
		r.forget(s.ObjectRequest)
		if _, err := s.Workload.Watcher.Metadata(s.Kind, s.NamespacedName); s.Vanished && err == nil {
			r.hub.Requirements.Add(s.ObjectRequest) // A claim of that name exists again.
		}
	}
	return object, err
}

// bringDown propagates late-initialized fields and Secrets to the workload cluster, and records the object. None waits
// for another, nor for the push: a password rotated in the hub is needed even if the hub rejects an edit. If the
// cluster does not respond, no further requests are made.
func (r *requirementReconciler) bringDown(ctx context.Context, s *downstream.Scope, o *downstream.Outcome, d downstream.Down) error {
	if !d.Secrets {
		return nil
	}
	hub := o.Down.Object
	o.RequeueAfter = condition.MinNonZero(o.RequeueAfter, d.RequeueAfter)
	var errs []error
	for _, step := range []func() error{
		func() error { return r.reports.Initialise(ctx, s, hub, d.Late) },
		func() error { return r.secrets.Pull(ctx, s, hub) },
		func() error { return r.reports.Record(ctx, s, hub, d.Record) },
	} {
		err := step()
		if hubaccess.IsUnanswered(err) {
			return err
		}
		errs = append(errs, o.Note(err))
	}
	return errors.Join(errs...)
}
