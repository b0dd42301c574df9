// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// Recreates reports whether a claim is recreated when its target changes. The claim's annotation wins over its
// namespace's. Losing a database because a user corrected an annotation is worse than waiting, so the consent must be
// explicit, and invalid values are no consent.
func Recreates(claim metav1.Object, namespace map[string]string) bool {
	value, ok := claim.GetAnnotations()[fleetv1alpha1.OnTargetChangeAnnotation]
	if !ok {
		value = namespace[fleetv1alpha1.OnTargetChangeAnnotation]
	}
	return value == fleetv1alpha1.OnTargetChangeRecreate
}

// isPaused reports whether the owner of a claim paused it, with Crossplane's own annotation.
//
// Like a claim's deletion policy, a pause can only prevent actions: nothing is pushed, pulled or deleted for the claim.
// A Disabled class, and un-enrolling a cluster, still remove the finalizer from a paused claim. Both delete nothing in
// the hub, and no claim may keep a cluster from leaving.
func isPaused(claim metav1.Object) bool {
	return claim.GetAnnotations()[fleetv1alpha1.PausedAnnotation] == fleetv1alpha1.PausedAnnotationTrue
}

// mayCreate returns why no object may be created for a claim that has none at a place of the hub; nil if it may.
//
// If a recorded object is gone, another client deleted it: Masthead deletes only when the claim is deleted or moves. A
// new object gets new infrastructure: an empty database replaces a lost one while all conditions look healthy. So the
// class or the claim's owner has to consent. The owner names the deleted object, so that the consent does not cover the
// next loss.
func mayCreate(claim *unstructured.Unstructured, policy fleetv1alpha1.RecreatePolicy, moves bool, kind string, place ownership.Place) *condition.Error {
	was, recorded := ownership.GetRecord(claim)
	switch {
	case !recorded, !was.Existed(claim), policy == fleetv1alpha1.RecreatePolicyAlways,
		claim.GetAnnotations()[fleetv1alpha1.RecreateAnnotation] == was.Consent(claim),
		moves && was.Namespace != place.Namespace:
		return nil
	}
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonHubObjectDeleted,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub was deleted there, not by Masthead. No replacement is created, because "+
			"it would be new and empty. Restore the object in the hub, delete this claim, or annotate the claim with %s: %s to create a new object.",
			kind, place.Name, was.Namespace, fleetv1alpha1.RecreateAnnotation, was.Consent(claim)),
	}
}

// deletionPolicy decides what happens to a claim's object in the hub when the claim is deleted.
//
// The class decides. A claim can only ask for more care: keeping infrastructure can be undone, since it stays in the
// target namespace, counts against its quota and names its source; deleting it cannot. So a claim of a class with
// Orphan is always orphaned, and an invalid value is not guessed at. A deleted class's policy is not assumed. What is
// kept costs the hub something, so a class can forbid claims to ask for it: then nothing is done, since deleting is not
// what its owner wants.
func deletionPolicy(class *fleetv1alpha1.EnrollmentClass, className string, claim metav1.Object) (fleetv1alpha1.DeletionPolicy, *condition.Error) {
	requested := fleetv1alpha1.DeletionPolicy(claim.GetAnnotations()[fleetv1alpha1.DeletionPolicyAnnotation])
	switch {
	case requested == fleetv1alpha1.DeletionPolicyOrphan && class != nil && class.Spec.Agent.OrphanPolicy == fleetv1alpha1.OrphanPolicyForbidden &&
		class.Spec.Agent.DeletionPolicy != fleetv1alpha1.DeletionPolicyOrphan:
		return "", &condition.Error{
			Reason: fleetv1alpha1.ReasonInvalidDeletionPolicy,
			Message: fmt.Sprintf("The EnrollmentClass %q of this cluster does not let claims leave their objects in the hub. The claim is not "+
				"deleted until the annotation %s is Delete or removed.", className, fleetv1alpha1.DeletionPolicyAnnotation),
		}
	case requested == fleetv1alpha1.DeletionPolicyOrphan:
		return fleetv1alpha1.DeletionPolicyOrphan, nil
	case requested != "" && requested != fleetv1alpha1.DeletionPolicyDelete:
		return "", &condition.Error{
			Reason: fleetv1alpha1.ReasonInvalidDeletionPolicy,
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
