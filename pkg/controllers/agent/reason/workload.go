// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

import (
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// MissingRight matches the authorizer's refusal. Admission plugins refuse with the same code.
var MissingRight = regexp.MustCompile(`cannot [a-z:-]+ resource `) //nolint:gochecknoglobals // A constant.

// IsMissingNamespace reports whether a write failed because its namespace does not exist.
func IsMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return status.Status().Details.Kind == "namespaces"
}

// OfWorkload turns a workload cluster's answer into a problem to report, or returns nil if a retry may change the
// answer.
func OfWorkload(err error, what, rejected string) *condition.Problem {
	switch {
	case apierrors.IsForbidden(err) && MissingRight.MatchString(err.Error()):
		return &condition.Problem{Reason: fleetv1alpha1.ReasonWorkloadForbidden, Message: fmt.Sprintf("Masthead lacks the right to %s in this cluster.", what)}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		IsMissingNamespace(err), apierrors.IsMethodNotSupported(err):
		return &condition.Problem{Reason: rejected, Message: fmt.Sprintf("This cluster does not let Masthead %s: %s", what, multicluster.BoundedText(err.Error()))}
	}
	return nil
}
