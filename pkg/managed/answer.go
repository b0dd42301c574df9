// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Answer is what the answer of an API server to a write means.
type Answer string

const (
	// Accepted means that it was written.
	Accepted Answer = "Accepted"

	// Outdated means that what was written is not what there is: the watch is behind, or the kind is not served yet. The
	// watch will say so, and the write is tried again soon in case that an event was missed. Nobody is told.
	Outdated Answer = "Outdated"

	// Forbidden means that a right is missing, or that an admission policy forbids it. Whether that policy is our own,
	// which is no problem, the caller knows.
	Forbidden Answer = "Forbidden"

	// Rejected means that the API server does not take what it was given, and will not take it next time.
	Rejected Answer = "Rejected"

	// Failed means that it could not be tried. It is an error, and passes.
	Failed Answer = "Failed"
)

// AnswerOf says what an error of a write means; none is Accepted.
func AnswerOf(err error) Answer {
	switch {
	case err == nil:
		return Accepted
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Outdated
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return Rejected
	}
	return Failed
}
