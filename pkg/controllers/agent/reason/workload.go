// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// OfWorkload turns a workload cluster's answer into a problem to report, or returns nil if a retry may change the
// answer.
func OfWorkload(err error, what, rejected string) *condition.Error {
	switch {
	case apierror.IsMissingRight(err):
		return &condition.Error{Reason: fleetv1alpha1.ReasonWorkloadForbidden, Message: fmt.Sprintf("Masthead lacks the right to %s in this cluster.", what)}
	case apierrors.IsForbidden(err), apierror.IsRejected(err), apierror.IsMissingNamespace(err), apierrors.IsMethodNotSupported(err):
		return &condition.Error{Reason: rejected, Message: fmt.Sprintf("This cluster does not let Masthead %s: %s", what, multicluster.BoundedText(err.Error()))}
	}
	return nil
}
