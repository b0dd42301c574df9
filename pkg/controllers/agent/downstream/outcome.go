// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Outcome is the result of a plan, reported in the claim's status.
type Outcome struct {
	// Silent means that nothing is reported: the claim is gone, or not ours to touch, or an event will follow.
	Silent bool

	// Hub is the object in the hub whose status the claim shows; nil if there is none owned by the claim.
	Hub *unstructured.Unstructured

	// All means that late fields and Secrets are pulled too.
	All bool

	// Current means that the spec of that object matches the claim.
	Current bool

	// Problem is why the claim is not synchronised; nil if it is.
	Problem *condition.Error

	// KeepCondition means that it is unknown whether the claim is synchronised, so that its condition stays as it is.
	KeepCondition bool

	// Holder holds the claim's name in the hub, if that is the problem.
	Holder string

	// Err is why to retry with back-off, after reporting.
	Err error

	// RetryAfter is when to requeue, if no event would.
	RetryAfter time.Duration
}

// Note adds how a step ended: the first problem is reported, and the soonest wait counts. It returns any other error.
func (o *Outcome) Note(err error) error {
	var problem *condition.Error
	var pending condition.PendingError
	switch {
	case errors.As(err, &problem):
		if o.Problem == nil {
			o.Problem = problem
		}
		o.RetryAfter = condition.MinNonZero(o.RetryAfter, problem.RetryAfter)
		if apierror.IsUnavailable(err) {
			o.Err = err
		}
	case errors.As(err, &pending):
		o.RetryAfter = condition.MinNonZero(o.RetryAfter, pending.After)
	default:
		return err
	}
	return nil
}
