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
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The watch is behind, or the kind is not served yet. The watch will catch up, and the write is retried soon in case
		// an event was missed.
		return condition.PendingError{After: condition.Soon}
	case apierrors.IsForbidden(err):
		// A permission is missing, or an admission policy denied the write. The caller knows whether that is Masthead's own
		// policy, which is no problem.
		reason = r.Forbidden
	case apierror.IsRejected(err), apierrors.IsMethodNotSupported(err):
		reason = r.Rejected
	}
	if reason == "" {
		return fmt.Errorf("cannot %s %s in cluster %q: %w", verb, about, cluster, err)
	}
	return condition.NewError(reason, about.Refused(err)).RetriedAfter(condition.SlowRetry())
}
