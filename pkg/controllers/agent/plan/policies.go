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
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// Recreates is whether a claim is created anew when its target changes. The claim says so, else its namespace. To lose
// a database because somebody corrected an annotation is worse than to wait; so it has to be said, in so many words,
// and what means nothing is not taken for consent.
func Recreates(claim metav1.Object, namespace map[string]string) bool {
	value, ok := claim.GetAnnotations()[fleetv1alpha1.OnTargetChangeAnnotation]
	if !ok {
		value = namespace[fleetv1alpha1.OnTargetChangeAnnotation]
	}
	return value == fleetv1alpha1.OnTargetChangeRecreate
}

// isPaused is whether the owner of a claim has paused it, in the words in which Crossplane is told the same.
//
// Like a claim's deletion policy, a pause only ever asks for less to be done: nothing is pushed, brought back or
// deleted for the claim. A class that is Disabled, and a cluster that is un-enrolled, take the finalizer off a paused
// claim all the same. Both delete nothing in the hub, and no claim may keep a cluster from leaving.
func isPaused(claim metav1.Object) bool {
	return claim.GetAnnotations()[fleetv1alpha1.PausedAnnotation] == fleetv1alpha1.PausedAnnotationTrue
}

// mayCreate is whether an object may be created for a claim that has none at a place of the hub, or why not.
//
// One that was there and is gone was deleted by somebody else: Masthead deletes only when the claim goes or moves. A
// new object gets new infrastructure. That is an empty database in place of a lost one, of which every condition says
// that all is well; so the class or the claim's owner has to want it. The owner names the object that was deleted, so
// that what he said once does not count for the next loss.
func mayCreate(claim *unstructured.Unstructured, policy fleetv1alpha1.RecreatePolicy, moves bool, kind string, place ownership.Place) *condition.Problem {
	was, recorded := ownership.RecordOf(claim)
	switch {
	case !recorded, policy == fleetv1alpha1.RecreatePolicyAlways,
		claim.GetAnnotations()[fleetv1alpha1.RecreateAnnotation] == was.Consent(claim),
		moves && was.Namespace != place.Namespace:
		return nil
	}
	return &condition.Problem{
		Reason: reason.ReasonHubObjectDeleted,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub was deleted there, not by Masthead. No other one is created, because it "+
			"would be new and empty. Restore it in the hub, delete this claim, or annotate it with %s: %s to have a new one.",
			kind, place.Name, was.Namespace, fleetv1alpha1.RecreateAnnotation, was.Consent(claim)),
	}
}

// deletionPolicy decides what happens to a claim's object in the hub when the claim goes.
//
// The class decides. A claim can only ask for more care: that infrastructure is kept can be undone, and what is kept is
// still in the target namespace, counts against its quota and says where it comes from; that it is deleted cannot. So a
// claim of a class that says Orphan is orphaned whatever it says, and a value that means nothing is not guessed at.
// Neither is what a class said that is not there any more.
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
