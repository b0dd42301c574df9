// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// deletionPolicy decides what happens to a claim's object in the hub when the claim goes.
//
// The class decides. A claim can only ask for more care: that infrastructure is kept can be undone, and what is kept is
// still in the target namespace, counts against its quota and says where it comes from; that it is deleted cannot. So a claim
// of a class that says Orphan is orphaned whatever it says, and a value that means nothing is not guessed at. Neither is what
// a class said that is not there any more.
func deletionPolicy(class *fleetv1alpha1.EnrollmentClass, className string, claim metav1.Object) (fleetv1alpha1.DeletionPolicy, *condition.Problem) {
	asked := fleetv1alpha1.DeletionPolicy(claim.GetAnnotations()[fleetv1alpha1.DeletionPolicyAnnotation])
	switch {
	case asked == fleetv1alpha1.DeletionPolicyOrphan:
		return fleetv1alpha1.DeletionPolicyOrphan, nil
	case asked != "" && asked != fleetv1alpha1.DeletionPolicyDelete:
		return "", &condition.Problem{
			Reason: reason.ReasonInvalidDeletionPolicy,
			Message: fmt.Sprintf("The annotation %s must be Delete or Orphan. The claim is not deleted until it is corrected or removed.",
				fleetv1alpha1.DeletionPolicyAnnotation),
		}
	case class == nil:
		return "", classNotFound(className)
	case class.Spec.Agent.DeletionPolicy == fleetv1alpha1.DeletionPolicyOrphan:
		return fleetv1alpha1.DeletionPolicyOrphan, nil
	}
	return fleetv1alpha1.DeletionPolicyDelete, nil
}

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
	if live == nil || !s.owns(live) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	out := ownership.Released(live, s.us)
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
