// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// deletionPolicy decides what happens to a claim's object in the hub when the claim goes.
//
// The class decides. A claim can only ask for more care: that infrastructure is kept can be undone, and what is kept is
// still in the target namespace, counts against its quota and says where it comes from; that it is deleted cannot. So a claim
// of a class that says Orphan is orphaned whatever it says, and a value that means nothing is not guessed at. Neither is what
// a class said that is not there any more.
func deletionPolicy(class *fleetv1alpha1.EnrollmentClass, className string, claim metav1.Object) (fleetv1alpha1.DeletionPolicy, *problem) {
	asked := fleetv1alpha1.DeletionPolicy(claim.GetAnnotations()[fleetv1alpha1.DeletionPolicyAnnotation])
	switch {
	case asked == fleetv1alpha1.DeletionPolicyOrphan:
		return fleetv1alpha1.DeletionPolicyOrphan, nil
	case asked != "" && asked != fleetv1alpha1.DeletionPolicyDelete:
		return "", &problem{
			reason: ReasonInvalidDeletionPolicy,
			message: fmt.Sprintf("The annotation %s must be Delete or Orphan. The claim is not deleted until it is corrected or removed.",
				fleetv1alpha1.DeletionPolicyAnnotation),
		}
	case class == nil:
		return "", classNotFound(className)
	case class.Spec.Agent.DeletionPolicy == fleetv1alpha1.DeletionPolicyOrphan:
		return fleetv1alpha1.DeletionPolicyOrphan, nil
	}
	return fleetv1alpha1.DeletionPolicyDelete, nil
}

// released returns an object of the hub as nobody's, which says whose it was, and from which namespace. Nothing else of it
// changes.
//
// Our field manager gives up its fields without removing them. If it kept them, whoever adopts the object later would share
// them with a manager that never applies again, and could set them but never remove one.
func released(obj *unstructured.Unstructured, us source) *unstructured.Unstructured {
	out := obj.DeepCopy()
	annotations := out.GetAnnotations()
	for key := range us.annotations() {
		delete(annotations, key)
	}
	delete(annotations, AppliedHashAnnotation)
	delete(annotations, fleetv1alpha1.CreatedByAnnotation)
	annotations[fleetv1alpha1.ReleasedFromAnnotation] = us.String()
	out.SetAnnotations(annotations)

	manager := fieldManager(us.identifier)
	fields := slices.DeleteFunc(out.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
	if len(fields) == 0 {
		// An object without any would get a manager of all its fields (before-first-apply) with the next apply.
		fields = append(fields, noteOfRelease(out.GetAPIVersion()))
	}
	out.SetManagedFields(fields)
	return out
}

// noteOfRelease is the entry of managedFields that says that we wrote whose an object was.
func noteOfRelease(apiVersion string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: fleetv1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{
			Raw: []byte(`{"f:metadata":{"f:annotations":{"f:` + fleetv1alpha1.ReleasedFromAnnotation + `":{}}}}`),
		},
	}
}

// releaseAt gives up the claim's object at a place of the hub. It returns nothing if the claim has none there any more. It reads
// live, because the watch does not keep managedFields, and writes on condition that nothing has changed since.
func (r *requirementReconciler) releaseAt(ctx context.Context, s *scope, place hubKey) (*outcome, error) {
	resource := s.Kind.GroupResource().String()
	live, err := r.getOwn(ctx, s, place)
	if err != nil {
		if p := problemOf(err, "get", resource, place.Namespace); p != nil {
			return &outcome{problem: p, retryAfter: slowRetry()}, nil
		}
		return nil, err
	}
	if live == nil || !s.owns(live) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	out := released(live, s.us)
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	err = r.hubClient.Patch(ctx, out, patch, client.FieldOwner(fleetv1alpha1.FieldManager))
	switch {
	case err == nil:
	case isMissingObject(err):
		return nil, nil //nolint:nilnil // As above.
	case problemOf(err, "patch", resource, place.Namespace) != nil:
		return &outcome{hub: live, problem: problemOf(err, "patch", resource, place.Namespace), retryAfter: slowRetry()}, nil
	default:
		return nil, fmt.Errorf("cannot release %s %q in the hub: %w", place.kind, place.NamespacedName, err)
	}
	r.hub.observe(place, out)
	r.metrics.wrote(s.ClusterName, writeRelease)
	return nil, nil //nolint:nilnil // As above.
}

// removeAt deletes or releases the claim's object at a place of the hub, as the policy says. It returns nothing if none is
// left there.
func (r *requirementReconciler) removeAt(
	ctx context.Context, s *scope, place hubKey, policy fleetv1alpha1.DeletionPolicy,
) (*outcome, error) {
	if policy == fleetv1alpha1.DeletionPolicyOrphan {
		return r.releaseAt(ctx, s, place)
	}
	return r.deleteAt(ctx, s, place)
}
