// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// claim reads a claim in a workload cluster. AgentSynced is set by Masthead; the other conditions come from the hub's
// object, which is below.
func claim(obj *unstructured.Unstructured) []Finding {
	c, ok := conditionOf(obj, reason.ConditionAgentSynced)
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
	case reason.ReasonClassNotFound, reason.ReasonInvalidClass, reason.ReasonKindNotOffered, reason.ReasonReferencesUnresolved,
		reason.ReasonTargetNamespaceMissing:
		derived = true // The class, the definition, the reference and the namespace are below.
	case reason.ReasonMoving, reason.ReasonDeleting, reason.ReasonRecreating:
		severity, derived = Waiting, true
	case reason.ReasonReconcilePaused:
		severity = Waiting
	case reason.ReasonKindNotServed, reason.ReasonSecretMissing:
		severity, derived = Waiting, c.Reason == reason.ReasonKindNotServed
	}
	return []Finding{c.finding(severity, derived)}
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
