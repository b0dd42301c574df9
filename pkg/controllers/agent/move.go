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
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// targetChanged is why a claim whose object is in another namespace of the hub than it would go to now is not synchronised.
func targetChanged(place, key ownership.Place) *condition.Problem {
	return &condition.Problem{
		Reason: reason.ReasonTargetNamespaceChanged,
		Message: fmt.Sprintf("This claim was pushed to the namespace %q of the hub, and would go to %q now. It is not moved; "+
			"delete it and create it again, change the namespace back, or annotate it with %s: %s.", place.Namespace, key.Namespace,
			fleetv1alpha1.OnTargetChangeAnnotation, fleetv1alpha1.OnTargetChangeRecreate),
	}
}

// recreates is whether a claim is created anew when its target changes. The claim says so, else its namespace. To lose a
// database because somebody corrected an annotation is worse than to wait; so it has to be said, in so many words, and what
// means nothing is not taken for consent.
func recreates(claim metav1.Object, namespace map[string]string) bool {
	value, ok := claim.GetAnnotations()[fleetv1alpha1.OnTargetChangeAnnotation]
	if !ok {
		value = namespace[fleetv1alpha1.OnTargetChangeAnnotation]
	}
	return value == fleetv1alpha1.OnTargetChangeRecreate
}

// move lets go of the claim's object at a place of the hub, as for a deletion of the claim, so that it can be created at
// another one. It begins only if the hub would accept the object there.
func (r *requirementReconciler) move(ctx context.Context, s *scope, from, to ownership.Place) (outcome, error) {
	if !recreates(s.claim, s.pairing.annotations) {
		known, _ := r.hub.Watcher.Get(from.Kind, from.NamespacedName)
		return outcome{hub: known, problem: targetChanged(from, to)}, nil
	}
	known, err := r.hub.Watcher.Get(from.Kind, from.NamespacedName)
	arrived, arrivedErr := r.hub.Watcher.Get(to.Kind, to.NamespacedName)
	if (err != nil || known.GetDeletionTimestamp() == nil) && (arrivedErr != nil || !s.owns(arrived)) {
		if o, err := r.rehearse(ctx, s, to); o != nil || err != nil {
			r.awaitNamespace(s, to.Namespace, o)
			return deref(o), err
		}
	}
	policy, p := deletionPolicy(s.class, s.className, s.claim)
	if p != nil {
		return outcome{problem: p}, nil
	}
	o, err := r.removeAt(ctx, s, from, policy)
	if err != nil {
		return outcome{}, err
	}
	if o == nil {
		return outcome{silent: true, retryAfter: condition.Soon}, nil
	}
	if o.problem.Reason == reason.ReasonDeleting {
		o.problem = &condition.Problem{
			Reason: reason.ReasonMoving,
			Message: fmt.Sprintf("The %s %q in the namespace %q of the hub is being deleted, and will be created again in %q.",
				s.Kind.Kind, s.Name, from.Namespace, to.Namespace),
		}
	}
	return *o, nil
}

// rehearse asks the hub whether it would accept the claim at a place, and changes nothing.
func (r *requirementReconciler) rehearse(ctx context.Context, s *scope, key ownership.Place) (*outcome, error) {
	out := propagation.ForCreation(s.intent(ctx, key, nil))
	err := r.hubClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(ownership.FieldManager(s.us.Identifier)), client.DryRunAll)
	if err == nil {
		return nil, nil //nolint:nilnil // There is nothing in the way.
	}
	return r.explain(ctx, s, key, nil, "create", err)
}
