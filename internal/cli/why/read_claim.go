// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// claim reads a claim in a workload cluster. AgentSynced is set by Masthead; the other conditions come from the hub's
// object, which is below.
func claim(obj *unstructured.Unstructured) []Finding {
	c, ok := condition.Find(obj, fleetv1alpha1.ConditionAgentSynced)
	if !ok {
		return append(crossplanedFromHub(obj), Finding{
			Severity: Waiting, Derived: true, Reason: ReasonNobodyLooked,
			Message: "Masthead has not reconciled this claim yet: it has no condition AgentSynced.",
		})
	}
	if c.Status == "True" {
		return append(crossplanedFromHub(obj), deleting(obj)...)
	}
	severity, derived := Failed, false
	switch c.Reason {
	case fleetv1alpha1.ReasonClassNotFound, fleetv1alpha1.ReasonInvalidClass, fleetv1alpha1.ReasonKindNotOffered, fleetv1alpha1.ReasonReferencesUnresolved,
		fleetv1alpha1.ReasonTargetNamespaceMissing:
		derived = true // The class, the definition, the reference and the namespace are below.
	case fleetv1alpha1.ReasonMoving, fleetv1alpha1.ReasonDeleting, fleetv1alpha1.ReasonRecreating:
		severity, derived = Waiting, true
	case fleetv1alpha1.ReasonReconcilePaused:
		severity = Waiting
	case fleetv1alpha1.ReasonKindNotServed, fleetv1alpha1.ReasonSecretMissing:
		severity, derived = Waiting, c.Reason == fleetv1alpha1.ReasonKindNotServed
	}
	return []Finding{finding(c, severity, derived)}
}

// crossplanedFromHub reads the claim's conditions from the hub, all of which are derived here.
func crossplanedFromHub(obj *unstructured.Unstructured) []Finding {
	var out []Finding
	for _, f := range crossplaned(obj) {
		if f.Reason != ReasonNobodyLooked && f.Reason != ReasonDeletionWaits {
			f.Derived = true
			out = append(out, f)
		}
	}
	return out
}
