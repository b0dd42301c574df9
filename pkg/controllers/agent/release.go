// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// releaseAt gives up the claim's object at a place of the hub. It returns nothing if the claim has none there any more. It reads
// live, because the watch does not keep managedFields, and writes on condition that nothing has changed since.
func (r *requirementReconciler) releaseAt(ctx context.Context, s *scope, place ownership.Place) (*outcome, error) {
	resource := s.Kind.GroupResource().String()
	live, err := r.getOwn(ctx, s, place)
	if err != nil {
		if p := problemOf(err, "get", resource, place.Namespace); p != nil {
			return &outcome{problem: p, retryAfter: condition.SlowRetry()}, nil
		}
		return nil, err
	}
	if live == nil || !s.Owns(live) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	out := ownership.Released(live, s.Us)
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	err = r.hubClient.Patch(ctx, out, patch, client.FieldOwner(fleetv1alpha1.FieldManager))
	switch {
	case err == nil:
	case isMissingObject(err):
		return nil, nil //nolint:nilnil // As above.
	case problemOf(err, "patch", resource, place.Namespace) != nil:
		return &outcome{hub: live, problem: problemOf(err, "patch", resource, place.Namespace), retryAfter: condition.SlowRetry()}, nil
	default:
		return nil, fmt.Errorf("cannot release %s %q in the hub: %w", place.Kind, place.NamespacedName, err)
	}
	r.hub.Observe(place, out)
	r.metrics.wrote(s.ClusterName, writeRelease)
	return nil, nil //nolint:nilnil // As above.
}

// removeAt deletes or releases the claim's object at a place of the hub, as the policy says. It returns nothing if none is
// left there.
func (r *requirementReconciler) removeAt(
	ctx context.Context, s *scope, place ownership.Place, policy fleetv1alpha1.DeletionPolicy,
) (*outcome, error) {
	if policy == fleetv1alpha1.DeletionPolicyOrphan {
		return r.releaseAt(ctx, s, place)
	}
	return r.deleteAt(ctx, s, place)
}
