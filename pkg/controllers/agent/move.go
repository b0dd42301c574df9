// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// rehearse asks the hub whether it would accept the claim at a place, and changes nothing.
func (r *requirementReconciler) rehearse(ctx context.Context, s *scope, key ownership.Place) (*outcome, error) {
	out := propagation.ForCreation(s.intent(ctx, key, nil))
	err := r.hubClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(ownership.FieldManager(s.Us.Identifier)), client.DryRunAll)
	if err == nil {
		return nil, nil //nolint:nilnil // There is nothing in the way.
	}
	return r.explain(ctx, s, key, nil, "create", err)
}
