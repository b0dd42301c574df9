// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Condition returns the claim's condition AgentSynced: True without a problem.
func Condition(claim *unstructured.Unstructured, p *condition.Error) metav1.Condition {
	c := metav1.Condition{
		Type:               fleetv1alpha1.ConditionAgentSynced,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: claim.GetGeneration(),
		Reason:             fleetv1alpha1.ReasonSynced,
		Message:            "The hub holds this claim.",
	}
	if p != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.Reason, p.Message
		if p.Unknown {
			c.Status = metav1.ConditionUnknown
		}
	}
	return c
}

// BuildStatus returns the desired status of a claim in a workload cluster: the whole status of the hub's object, and
// our conditions: AgentSynced, and its equivalent for tools. Without an object in the hub, it is the claim's current
// status with our conditions.
//
// AgentSynced of the hub's object is not propagated: it is about the hub's own enrolment in yet another hub.
//
// Generations observed by conditions of the hub's object are translated to generations of the claim. current means that
// the hub's object matches the claim.
func BuildStatus(claim, hub *unstructured.Unstructured, current bool, ours metav1.Condition, now time.Time) map[string]any {
	from := claim
	if hub != nil {
		from = hub
	}
	status, _ := from.Object["status"].(map[string]any)
	status, _ = dropNulls(runtime.DeepCopyJSON(status)).(map[string]any)
	if status == nil {
		status = map[string]any{}
	}

	theirs, _ := status["conditions"].([]any)
	conditions := make([]any, 0, len(theirs)+1)
	for _, c := range theirs {
		if c, ok := c.(map[string]any); ok {
			if c["type"] == fleetv1alpha1.ConditionAgentSynced || hub == nil && IsOurCondition(c["type"]) {
				continue
			}
			if hub != nil {
				translateGeneration(c, claim, hub, current)
			}
		}
		conditions = append(conditions, c)
	}
	conditions = keepReferencesResolved(claim, conditions)
	if tools := forTools(claim, ours, conditions); tools != nil {
		// The hub's value is about an older state, or less important than what blocks synchronising the claim.
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			theirs, ok := c.(map[string]any)
			return ok && IsOurCondition(theirs["type"])
		})
		conditions = append(conditions, transitioned(condition.Entry(claim, tools.Type), *tools, now))
	}
	status["conditions"] = append(conditions, transitioned(AgentSynced(claim), ours, now))
	setObservedGeneration(status, claim, hub, current)
	return status
}

// translateGeneration translates a condition's observed generation to one of the claim. Each side counts its own: with
// the hub's number `kubectl wait` and kstatus would wait for ever, or not at all. A condition that has observed the
// current object in the hub has observed the current claim, if the two match; anything else becomes the generation
// before, which only says "not yet".
func translateGeneration(condition map[string]any, claim, hub *unstructured.Unstructured, current bool) {
	observed, ok := asInt64(condition["observedGeneration"])
	if !ok {
		return
	}
	if current && observed >= hub.GetGeneration() {
		condition["observedGeneration"] = claim.GetGeneration()
		return
	}
	condition["observedGeneration"] = max(claim.GetGeneration()-1, 0)
}

// asInt64 reads a number as it comes out of JSON.
func asInt64(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	}
	return 0, false
}

// AgentSynced returns the condition AgentSynced of a claim, or nil.
func AgentSynced(claim *unstructured.Unstructured) map[string]any {
	return condition.Entry(claim, fleetv1alpha1.ConditionAgentSynced)
}

// ShownAgentSynced returns the condition AgentSynced of a claim, if it has one.
func ShownAgentSynced(claim *unstructured.Unstructured) (metav1.Condition, bool) {
	shown, ok := condition.Find(claim, fleetv1alpha1.ConditionAgentSynced)
	shown.ObservedGeneration, _ = asInt64(AgentSynced(claim)["observedGeneration"])
	return shown, ok
}

// transitioned returns one of our conditions as it should be shown. As usual, the transition time is that of the last
// change of its status; fields that the claims' definition does not know, and hence drops, make no difference.
func transitioned(shown map[string]any, c metav1.Condition, now time.Time) map[string]any {
	since := now.UTC().Format(time.RFC3339)
	if s, ok := shown["lastTransitionTime"].(string); ok && shown["status"] == string(c.Status) {
		since = s
	}
	out := map[string]any{
		"type":               c.Type,
		"status":             string(c.Status),
		"observedGeneration": c.ObservedGeneration,
		"lastTransitionTime": since,
		"reason":             c.Reason,
		"message":            c.Message,
	}
	if _, known := shown["observedGeneration"]; shown != nil && !known {
		delete(out, "observedGeneration")
	}
	return out
}

// StatusDiffers reports whether a claim must be written to show a status.
func StatusDiffers(claim *unstructured.Unstructured, status map[string]any) bool {
	shown, _ := claim.Object["status"].(map[string]any)
	return !equality.Semantic.DeepEqual(shown, status)
}

// dropNulls removes null fields. In a merge patch they mean "remove", so that the object would never match what was
// written.
func dropNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
				continue
			}
			v[k] = dropNulls(e)
		}
	case []any:
		for i := range v {
			v[i] = dropNulls(v[i])
		}
	}
	return v
}

// AwaitsFirstStatus returns how much longer the first status of a claim should wait for the hub's, or zero.
//
// A claim just created in the hub has no status there yet. Writing our condition at once and the rest a moment later
// would be two writes where one suffices; so our condition waits a little.
func AwaitsFirstStatus(claim, hub *unstructured.Unstructured, now time.Time, patience time.Duration) time.Duration {
	if hub == nil || AgentSynced(claim) != nil {
		return 0
	}
	if status, _ := hub.Object["status"].(map[string]any); len(status) > 0 {
		return 0
	}
	left := hub.GetCreationTimestamp().Add(patience).Sub(now)
	return min(max(left, 0), patience)
}
