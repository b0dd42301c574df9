// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/masthead-dev/masthead/pkg/apierror"
)

// Answer is the meaning of an API server's response to a write.
type Answer string

const (
	// Accepted means that the write succeeded.
	Accepted Answer = "Accepted"

	// Outdated means that the write was based on stale data: the watch is behind, or the kind is not served yet. The watch
	// will catch up, and the write is retried soon in case an event was missed. It is not reported.
	Outdated Answer = "Outdated"

	// Forbidden means that a permission is missing, or that an admission policy denied the write. The caller knows whether
	// that is Masthead's own policy, which is no problem.
	Forbidden Answer = "Forbidden"

	// Rejected means that the API server rejected the object, and will reject it next time.
	Rejected Answer = "Rejected"

	// Failed means that the write could not be attempted. It is a transient error.
	Failed Answer = "Failed"
)

// ClassifyAnswer classifies the error of a write; nil is Accepted.
func ClassifyAnswer(err error) Answer {
	switch {
	case err == nil:
		return Accepted
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Outdated
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierror.IsRejected(err), apierrors.IsMethodNotSupported(err):
		return Rejected
	}
	return Failed
}
