// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Error is why something is not as it should be, in a condition's terms: a reason, which is one of the API's constants,
// and a message for users, without times and local port numbers. It is reported, and not retried with back-off.
type Error struct {
	// Type is the condition's type, where a controller reports problems in several. Empty for its only one.
	Type string

	Reason, Message string

	// RetryAfter is when to retry. Zero: an event follows when it may be over.
	RetryAfter time.Duration

	// Unknown says that it is not known whether something is as it should be. The agent uses it for whether the hub
	// matches the claim.
	Unknown bool
}

// NewError returns an Error.
func NewError(reason, message string) *Error { return &Error{Reason: reason, Message: message} }

// Error implements error.
func (e *Error) Error() string { return e.Message }

// RetriedAfter returns the error with when to retry.
func (e *Error) RetriedAfter(after time.Duration) *Error {
	out := *e
	out.RetryAfter = after
	return &out
}

// PendingError ends what waits for something that is on its way. It is not reported.
type PendingError struct {
	// After is when to continue. Zero: an event follows.
	After time.Duration
}

// Error implements error.
func (e PendingError) Error() string { return "what is waited for is pending" }

// IsPending reports whether an error is a PendingError.
func IsPending(err error) bool { return errors.As(err, new(PendingError)) }

// Join returns one error for those of several steps, of which any may be nil: those that are retried with back-off, or
// else the first Error, which mentions the number of others, or else a PendingError. The soonest wait is kept.
func Join(errs ...error) error {
	var failed []error
	var first *Error
	var again time.Duration
	problems, pending := 0, false
	for _, err := range errs {
		var problem *Error
		var wait PendingError
		switch {
		case err == nil:
		case errors.As(err, &problem):
			if problems++; first == nil {
				first = problem
			}
			again = MinNonZero(again, problem.RetryAfter)
		case errors.As(err, &wait):
			pending, again = true, MinNonZero(again, wait.After)
		default:
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) > 0:
		return errors.Join(failed...)
	case first != nil:
		joined := *first
		joined.RetryAfter = again
		if problems > 1 {
			joined.Message = fmt.Sprintf("%s There are %d more such problems.", first.Message, problems-1)
		}
		return &joined
	case pending:
		return PendingError{After: again}
	}
	return nil
}

// Result is how a reconciliation ends whose steps ended with these errors.
func Result(errs ...error) (reconcile.Result, error) {
	err := Join(errs...)
	var problem *Error
	var wait PendingError
	switch {
	case errors.As(err, &problem):
		return reconcile.Result{RequeueAfter: problem.RetryAfter}, nil
	case errors.As(err, &wait):
		return reconcile.Result{RequeueAfter: wait.After}, nil
	}
	return reconcile.Result{}, err
}
