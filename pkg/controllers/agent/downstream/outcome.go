// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"errors"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
)

// Outcome is a plan as its steps left it.
type Outcome struct {
	plan.Plan

	// Current means that the spec of the hub's object matches the claim.
	Current bool

	// KeepCondition means that it is unknown whether the claim is synchronised: its condition stays as it is, and the
	// hub's status is shown beside it.
	KeepCondition bool

	// Err is why to retry with back-off, after reporting.
	Err error
}

// skips reports whether nothing is reported: the claim is gone, or not ours to touch, or an event will follow.
func (o *Outcome) skips() bool { return o.SkipReport && !o.KeepCondition }

// Note adds how a step ended: the first problem is reported, and the soonest wait counts. It returns any other error.
func (o *Outcome) Note(err error) error {
	var problem *condition.Error
	var pending condition.PendingError
	switch {
	case errors.As(err, &problem):
		if o.Problem == nil {
			o.Problem = problem
		}
		o.RequeueAfter = condition.MinNonZero(o.RequeueAfter, problem.RetryAfter)
		if apierror.IsUnavailable(err) {
			o.Err = err
		}
	case errors.As(err, &pending):
		o.RequeueAfter = condition.MinNonZero(o.RequeueAfter, pending.After)
	default:
		return err
	}
	return nil
}
