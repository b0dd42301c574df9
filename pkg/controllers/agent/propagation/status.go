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

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// Condition makes the condition AgentSynced of a claim: True without a problem.
func Condition(claim *unstructured.Unstructured, p *condition.Problem) metav1.Condition {
	c := metav1.Condition{
		Type:               reason.ConditionAgentSynced,
		Status:             metav1.ConditionTrue,
		ObservedGeneration: claim.GetGeneration(),
		Reason:             reason.ReasonSynced,
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

// StatusOf returns the status that a claim in a workload cluster shall have: that of the hub's object, whole, and our
// conditions: AgentSynced, and what it means for tools. Without an object in the hub of which to speak, it is what the
// claim shows already, with our conditions.
//
// A condition AgentSynced that the hub's object has is not brought along: it would be about the hub's own enrolment in
// yet another hub.
//
// The generations that conditions of the hub's object have observed are told as generations of the claim. current says
// whether the hub's object is what the claim says.
func StatusOf(claim, hub *unstructured.Unstructured, current bool, ours metav1.Condition, now time.Time) map[string]any {
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
			if c["type"] == reason.ConditionAgentSynced || hub == nil && IsOurCondition(c["type"]) {
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
		// What the hub says of the same is about an older state, or less than what keeps the claim from being synchronised.
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			theirs, ok := c.(map[string]any)
			return ok && IsOurCondition(theirs["type"])
		})
		conditions = append(conditions, transitioned(ShownCondition(claim, tools.Type), *tools, now))
	}
	status["conditions"] = append(conditions, transitioned(AgentSynced(claim), ours, now))
	setObservedGeneration(status, claim, hub, current)
	return status
}

// translateGeneration makes the generation that a condition has observed one of the claim. Each side counts its own:
// the hub's number in the claim would have `kubectl wait` and kstatus wait for ever, or not at all. What has observed
// the hub's object as it is, has observed the claim as it is, provided that the one is what the other says; everything
// else is the generation before, which says no more than "not yet".
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

// AgentSynced is the condition AgentSynced as a claim shows it, or nil.
func AgentSynced(claim *unstructured.Unstructured) map[string]any {
	return ShownCondition(claim, reason.ConditionAgentSynced)
}

// ShownAgentSynced is the condition AgentSynced as a claim shows it, if it does.
func ShownAgentSynced(claim *unstructured.Unstructured) (metav1.Condition, bool) {
	shown := AgentSynced(claim)
	if shown == nil {
		return metav1.Condition{}, false
	}
	text := func(field string) string {
		s, _ := shown[field].(string)
		return s
	}
	observed, _ := asInt64(shown["observedGeneration"])
	return metav1.Condition{
		Type: reason.ConditionAgentSynced, Status: metav1.ConditionStatus(text("status")), ObservedGeneration: observed,
		Reason: text("reason"), Message: text("message"),
	}, true
}

// ShownCondition is a condition as a claim shows it, or nil.
func ShownCondition(claim *unstructured.Unstructured, conditionType string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// transitioned is a condition of ours as it shall be shown. The time of the transition is that of the last change of
// the status, as everywhere; a field that the definition of the claims does not know, and hence drops, makes no
// difference.
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

// StatusDiffers is whether a claim has to be written to show a status.
func StatusDiffers(claim *unstructured.Unstructured, status map[string]any) bool {
	shown, _ := claim.Object["status"].(map[string]any)
	return !equality.Semantic.DeepEqual(shown, status)
}

// dropNulls removes fields that are null. In a merge patch they would mean "remove", so that an object would never look
// like what was written.
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

// AwaitsFirstStatus is how much longer the first status of a claim should wait for the hub's, or zero.
//
// A claim that was just created in the hub has no status there for a moment. Writing our condition at once and
// everything else a moment later would be two writes where one tells the user the same; so our condition waits a little
// for company.
func AwaitsFirstStatus(claim, hub *unstructured.Unstructured, now time.Time, patience time.Duration) time.Duration {
	if AgentSynced(claim) != nil {
		return 0
	}
	if hasStatus(hub) {
		return 0
	}
	left := hub.GetCreationTimestamp().Add(patience).Sub(now)
	return min(max(left, 0), patience)
}

// hasStatus is whether the hub's object has a status; there may be no object.
func hasStatus(hub *unstructured.Unstructured) bool {
	if hub == nil {
		return false
	}
	status, _ := hub.Object["status"].(map[string]any)
	return len(status) > 0
}

// IsFirstStatus is whether writing the status of a claim brings it the hub's for the first time. Our condition alone is
// none: that it is written says that a burst is over.
func IsFirstStatus(toldBefore bool, hub *unstructured.Unstructured) bool {
	return !toldBefore && hasStatus(hub)
}
