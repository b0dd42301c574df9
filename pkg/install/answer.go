// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// answer is the meaning of an API server's response to a write.
type answer string

const (
	// answerAccepted means that the write succeeded.
	answerAccepted answer = "Accepted"

	// answerOutdated means that the write was based on stale data: the watch is behind, or the kind is not served yet.
	// The watch will catch up, and the write is retried soon in case an event was missed. It is not reported.
	answerOutdated answer = "Outdated"

	// answerForbidden means that a permission is missing, or that an admission policy denied the write. The caller knows
	// whether that is Masthead's own policy, which is no problem.
	answerForbidden answer = "Forbidden"

	// answerRejected means that the API server rejected the object, and will reject it next time.
	answerRejected answer = "Rejected"

	// answerFailed means that the write could not be attempted. It is a transient error.
	answerFailed answer = "Failed"
)

// classifyAnswer classifies the error of a write; nil is answerAccepted.
func classifyAnswer(err error) answer {
	switch {
	case err == nil:
		return answerAccepted
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return answerOutdated
	case apierrors.IsForbidden(err):
		return answerForbidden
	case apierror.IsRejected(err), apierrors.IsMethodNotSupported(err):
		return answerRejected
	}
	return answerFailed
}

// Reasons are the reasons of what is forbidden or rejected. Where one is empty, that is retried with back-off instead.
type Reasons struct{ Forbidden, Rejected string }

// DefinitionReasons are the Reasons for writes of definitions.
var DefinitionReasons = Reasons{ //nolint:gochecknoglobals // A constant.
	Forbidden: fleetv1alpha1.ReasonDefinitionForbidden, Rejected: fleetv1alpha1.ReasonDefinitionRejected,
}

// Problem returns what the error of a request about an object in a cluster means: nil, a PendingError, a
// condition.Error, or an error that is retried with back-off.
func (r Reasons) Problem(verb string, about Subject, cluster mcr.ClusterName, err error) error {
	reason := ""
	switch classifyAnswer(err) {
	case answerAccepted:
		return nil
	case answerOutdated:
		return condition.PendingError{After: condition.Soon}
	case answerForbidden:
		reason = r.Forbidden
	case answerRejected:
		reason = r.Rejected
	case answerFailed:
	}
	if reason == "" {
		return fmt.Errorf("cannot %s %s in cluster %q: %w", verb, about, cluster, err)
	}
	return condition.NewError(reason, about.Refused(err)).RetriedAfter(condition.SlowRetry())
}
