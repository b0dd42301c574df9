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

// rehearse asks the hub whether it would accept the claim at a place, and changes nothing.
func (r *requirementReconciler) rehearse(ctx context.Context, s *scope, key ownership.Place) (*outcome, error) {
	out := propagation.ForCreation(s.intent(ctx, key, nil))
	err := r.hubClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(ownership.FieldManager(s.us.Identifier)), client.DryRunAll)
	if err == nil {
		return nil, nil //nolint:nilnil // There is nothing in the way.
	}
	return r.explain(ctx, s, key, nil, "create", err)
}
