// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/references"
)

// Tools that wait for a claim (kstatus in Flux and Helm, Argo CD) do not know AgentSynced. They read Ready, which comes
// unchanged from Crossplane in the hub, and two more conditions that kstatus lets any controller write:
//
//   - Stalled is True while the claim is refused until a user acts, also if only its references are.
//   - Reconciling is True while it is unknown, or not reported by the hub, whether the current claim is ready.
//
// Masthead sets at most one of them, and neither when the claim is synchronised and the hub has observed it. Then the
// conditions of the hub's object remain, these two included. Like AgentSynced they are written to the claim only; no
// status is pushed to the hub.
//
// Rejected: writing Ready. It is Crossplane's, and two writers of one condition would undo each other's work.
const (
	conditionReady       = "Ready"
	conditionStalled     = "Stalled"
	conditionReconciling = "Reconciling"
)

// passing returns the reasons of AgentSynced that resolve by themselves, and the one that the claim's owner wants. For
// any other reason, including one added later, AgentSynced False waits for a user.
func passing() []string {
	return []string{
		fleetv1alpha1.ReasonMoving, fleetv1alpha1.ReasonDeleting, fleetv1alpha1.ReasonRecreating, fleetv1alpha1.ReasonKindNotServed, fleetv1alpha1.ReasonSecretMissing,
		fleetv1alpha1.ReasonReferencesUnresolved, fleetv1alpha1.ReasonReconcilePaused,
	}
}

// IsOurCondition reports whether a condition of that type may be Masthead's.
func IsOurCondition(conditionType any) bool {
	return conditionType == fleetv1alpha1.ConditionAgentSynced || conditionType == conditionStalled || conditionType == conditionReconciling
}

// forTools returns the condition that shows tools why to keep waiting for a claim, or nil if AgentSynced is no reason.
// theirs are the conditions from the hub, with the claim's generations.
func forTools(claim *unstructured.Unstructured, synced metav1.Condition, theirs []any) *metav1.Condition {
	c := synced
	switch {
	case synced.Status == metav1.ConditionTrue && observedByHub(claim, theirs):
		return nil
	case synced.Status == metav1.ConditionTrue:
		c.Type, c.Reason = conditionReconciling, fleetv1alpha1.ReasonAwaitingHub
		c.Message = "The hub has not reported yet whether the current generation of this claim is ready"
	case synced.Reason == fleetv1alpha1.ReasonReferencesUnresolved && references.Refused(claim.Object):
		c.Type = conditionStalled
	case synced.Status == metav1.ConditionUnknown || slices.Contains(passing(), synced.Reason):
		c.Type = conditionReconciling
	default:
		c.Type = conditionStalled
	}
	c.Status = metav1.ConditionTrue
	return &c
}

// observedByHub reports whether the hub's readiness is about the current claim. A condition without a generation may
// be: Crossplane before v1.20 writes none.
func observedByHub(claim *unstructured.Unstructured, theirs []any) bool {
	for _, c := range theirs {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionReady {
			observed, known := asInt64(c["observedGeneration"])
			return !known || observed >= claim.GetGeneration()
		}
	}
	return false
}

// setObservedGeneration sets status.observedGeneration, which the definitions in workload clusters have (see
// observesGeneration), to the claim's generation that the status is about. A field that the API's author defined counts
// the hub's generations, and is translated like those of conditions. A definition without the field does not get it:
// the claim would never show it.
func setObservedGeneration(status map[string]any, claim, hub *unstructured.Unstructured, current bool) {
	_, shown, _ := unstructured.NestedFieldNoCopy(claim.Object, "status", "observedGeneration")
	if !shown {
		if _, theirs := status["observedGeneration"]; !theirs {
			return
		}
	}
	field := map[string]any{"observedGeneration": claim.GetGeneration()}
	if hub != nil {
		if observed, ok := asInt64(status["observedGeneration"]); ok && observed >= 0 {
			field["observedGeneration"] = observed
			translateGeneration(field, claim, hub, current)
		}
	}
	status["observedGeneration"] = field["observedGeneration"]
}
