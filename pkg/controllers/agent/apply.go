// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
)

// apply carries out the steps of a plan, until one does not come through.
func (r *requirementReconciler) apply(ctx context.Context, s *scope.Scope, p plan.Plan) (scope.Outcome, error) {
	if p.WaitAt != nil {
		r.hub.Wait(*p.WaitAt, s.Request)
	} else {
		r.hub.StopWaiting(s.Request)
	}
	o := scope.Outcome{Silent: p.Silent, Hub: p.Down.Object, All: p.Down.All, Problem: p.Problem, Holder: p.Holder, RetryAfter: p.Again}
	if p.Slowly {
		o.RetryAfter = condition.SlowRetry()
	}
	if p.Silent && p.Down.Object != nil && len(p.Steps) == 0 {
		// What there is to know about the claim will come as an event. The hub's status is known.
		o.Silent, o.AsShown = false, true
	}
	var adopted *unstructured.Unstructured
	for _, st := range p.Steps {
		if st.Do == plan.Push && adopted != nil {
			st.Saw = adopted
		}
		object, stopped, err := r.do(ctx, s, st)
		switch {
		case err != nil:
			// Whether the problem may be told was for the steps to find out.
			o.Problem, o.Holder = nil, ""
			return o, err
		case stopped != nil:
			return stoppedBy(o, st, *stopped), nil
		case st.Do == plan.Adopt:
			adopted = object
		case st.Do == plan.Push:
			o.Hub, o.Current = object, true
		}
	}
	return o, nil
}

// stoppedBy is the outcome of a plan of which a step says why it does not go on. What is known of the claim's object
// flows down nevertheless.
func stoppedBy(o scope.Outcome, st plan.Step, why scope.Outcome) scope.Outcome {
	why.All = o.All
	if why.Hub == nil {
		why.Hub = o.Hub
	}
	if st.Do == plan.Remove && st.To != nil && why.Problem != nil && why.Problem.Reason == reason.ReasonDeleting {
		why.Problem = plan.Moving(st)
	}
	return why
}

// do carries out one step. It returns the object of the hub that it wrote or found right, if it is about one, or why
// the plan does not go on.
func (r *requirementReconciler) do(ctx context.Context, s *scope.Scope, st plan.Step) (object *unstructured.Unstructured, stopped *scope.Outcome, err error) {
	switch st.Do {
	case plan.Protect:
		stopped, err = r.protect(ctx, s, st.At)
	case plan.Adopt:
		object, stopped, err = r.adopt(ctx, s, st.At, st.Saw)
	case plan.Push:
		object, stopped, err = r.push(ctx, s, st.At, st.Saw)
		r.awaitNamespace(s, st.At.Namespace, stopped)
	case plan.Rehearse:
		stopped, err = r.dryRunCreate(ctx, s, st.At)
		r.awaitNamespace(s, st.At.Namespace, stopped)
	case plan.Disclose:
		stopped, err = r.disclose(ctx, s, st.At)
	case plan.Remove:
		stopped, err = r.removeAt(ctx, s, st.At, st.Policy)
	case plan.RemoveNamed:
		stopped, err = r.removeNamed(ctx, s, st.Policy)
	case plan.AwaitCreations:
		if left := r.awaitsCreation(s); left > 0 {
			stopped = &scope.Outcome{Silent: true, RetryAfter: left}
		}
	case plan.Release:
		stopped, err = r.release(ctx, s)
	case plan.Forget:
		r.forget(s.Request)
	}
	return object, stopped, err
}

// bringDown brings what the hub has made of a claim to the workload cluster: late fields and Secrets. Neither waits for
// the other, nor for what goes up: a password that was rotated in the hub is needed whatever became of an edit that the
// hub rejects. But a cluster that does not answer is not asked again.
func (r *requirementReconciler) bringDown(ctx context.Context, s *scope.Scope, o *scope.Outcome) error {
	if !flowsDown(*o) {
		return nil
	}
	late, lateAfter, lateErr := r.late.Initialise(ctx, s, o.Hub)
	if answer.IsUnanswered(lateErr) {
		return lateErr
	}
	p, secretsAfter, secretsErr := r.secrets.Pull(ctx, s, o.Hub)
	for _, told := range []*condition.Problem{p, late} {
		if o.Problem == nil {
			o.Problem = told
		}
	}
	o.RetryAfter = condition.Sooner(o.RetryAfter, condition.Sooner(secretsAfter, lateAfter))
	return errors.Join(lateErr, secretsErr)
}

// flowsDown is whether what the hub has made of a claim is brought to its workload cluster.
func flowsDown(o scope.Outcome) bool {
	return !o.Silent && o.All && o.Hub != nil && o.Hub.GetDeletionTimestamp() == nil
}

// record has the claim record its object in the hub, if that could wait for the status, or says why the workload
// cluster refuses it.
func (r *requirementReconciler) record(ctx context.Context, s *scope.Scope, o scope.Outcome) (*condition.Problem, time.Duration, error) {
	if !flowsDown(o) {
		return nil, 0, nil
	}
	return r.late.Record(ctx, s, o.Hub)
}
