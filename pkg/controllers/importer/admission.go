// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// admission checks whether the hub refuses what an import must never do. While it does not, the import may not write:
// no object is created or changed, but an existing import's kubeconfig is kept up to date.
func (r *Reconciler) admission(ctx context.Context, s *scope) (mayWrite bool, res result) {
	if err := r.verify(ctx, s.imp.Namespace); err != nil {
		res.again = workload.Retry
		res.fail(fleetv1alpha1.ConditionAdmissionEnforced, fleetv1alpha1.ReasonCanaryFailed, "Nothing is created or changed: %s", err)
		return false, res
	}
	res.succeed(fleetv1alpha1.ConditionAdmissionEnforced, fleetv1alpha1.ReasonCanaryDenied, "The hub refuses what an import must never do")
	return true, res
}
