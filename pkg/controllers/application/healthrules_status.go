// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
)

// enqueueAllRules is the source of the first look at the rules.
func enqueueAllRules(_ context.Context, q workqueue.TypedRateLimitingInterface[allRules]) error {
	q.Add(allRules{})
	return nil
}

// olderFirst is the order in which rules for the same kind count. It does not depend on who looks, or when.
func olderFirst(a, b fleetv1alpha1.HealthRule) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func revisionOf(rule *fleetv1alpha1.HealthRule) revision {
	return revision{uid: rule.UID, generation: rule.Generation}
}

// follow compiles the rules, the oldest first, and chooses the first for each kind, also if it cannot be compiled: a younger one that
// takes its place while somebody corrects a mistake would be a surprise. What was compiled before is not compiled again.
func follow(rules []fleetv1alpha1.HealthRule, before *followed) *followed {
	now := &followed{compiled: map[revision]*health.Rule{}, chosen: map[schema.GroupKind]revision{}}
	inOrder := make([]*health.Rule, 0, len(rules))
	for i := range rules {
		at := revisionOf(&rules[i])
		rule := before.rule(at)
		if rule == nil {
			rule = health.Compile(rules[i].Name, rules[i].Spec)
		}
		now.compiled[at] = rule
		inOrder = append(inOrder, rule)
		if _, taken := now.chosen[rule.Kind()]; !taken {
			now.chosen[rule.Kind()] = at
		}
	}
	now.assessor = health.New(inOrder...)
	return now
}

func (f *followed) rule(at revision) *health.Rule {
	if f == nil {
		return nil
	}
	return f.compiled[at]
}

// differences are the kinds for which another rule is followed than before.
func differences(before, now *followed) []schema.GroupKind {
	if before == nil {
		before = &followed{}
	}
	var kinds []schema.GroupKind
	for kind, at := range now.chosen {
		if before.chosen[kind] != at {
			kinds = append(kinds, kind)
		}
	}
	for kind := range before.chosen {
		if _, still := now.chosen[kind]; !still {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// ruleStatus computes the status of one of the rules, which are in the order in which they count.
func ruleStatus(
	rule *fleetv1alpha1.HealthRule, rules []fleetv1alpha1.HealthRule, f *followed, now time.Time,
) fleetv1alpha1.HealthRuleStatus {
	ready := metav1.Condition{
		Type: fleetv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonCompiled,
		Message: "The rule is followed", ObservedGeneration: rule.Generation,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	compiled := f.rule(revisionOf(rule))
	if at := f.chosen[compiled.Kind()]; at != revisionOf(rule) {
		ready.Status, ready.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonShadowed
		ready.Message = fmt.Sprintf("HealthRule %q is older and for the same kind", nameAt(rules, at))
	} else if err := compiled.Err(); err != nil {
		ready.Status, ready.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonCannotCompile
		ready.Message = err.Error()
	}
	conditions := []metav1.Condition{ready}
	if ready.Status != metav1.ConditionTrue {
		// Nothing but a change of the rules makes it followed.
		stalled := ready
		stalled.Type, stalled.Status = fleetv1alpha1.ConditionStalled, metav1.ConditionTrue
		conditions = append(conditions, stalled)
	}
	for i := range conditions {
		c := &conditions[i]
		if before := meta.FindStatusCondition(rule.Status.Conditions, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
	}
	return fleetv1alpha1.HealthRuleStatus{ObservedGeneration: rule.Generation, Conditions: conditions}
}

func nameAt(rules []fleetv1alpha1.HealthRule, at revision) string {
	for i := range rules {
		if revisionOf(&rules[i]) == at {
			return rules[i].Name
		}
	}
	return ""
}

func appliedConditions(conditions []metav1.Condition) []any {
	applied := make([]any, 0, len(conditions))
	for _, c := range conditions {
		applied = append(applied, map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"observedGeneration": c.ObservedGeneration, "lastTransitionTime": c.LastTransitionTime.UTC().Format(time.RFC3339),
		})
	}
	return applied
}
