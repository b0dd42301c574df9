// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
)

// enqueueAllRules triggers the first reconcile of the rules.
func enqueueAllRules(_ context.Context, q workqueue.TypedRateLimitingInterface[allRules]) error {
	q.Add(allRules{})
	return nil
}

// olderFirst orders rules for the same kind by precedence. It does not depend on the process or the time.
func olderFirst(a, b fleetv1alpha1.HealthRule) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func newRevision(rule *fleetv1alpha1.HealthRule) revision {
	return revision{uid: rule.UID, generation: rule.Generation}
}

// follow compiles the rules, the oldest first, and chooses for each selector those up to the first that always decides.
// An invalid rule counts as deciding: otherwise a younger one would take over while its mistake is corrected. Compiled
// rules are reused.
func follow(rules []fleetv1alpha1.HealthRule, before *followed, library *health.Library) *followed {
	now := &followed{compiled: map[revision]*health.Rule{}, chosen: map[health.Selector][]revision{}}
	inOrder := make([]*health.Rule, 0, len(rules))
	decided := map[health.Selector]bool{}
	for i := range rules {
		at := newRevision(&rules[i])
		rule := before.rule(at)
		if rule == nil {
			rule = health.Compile(rules[i].Name, rules[i].Spec)
		}
		now.compiled[at] = rule
		inOrder = append(inOrder, rule)
		for _, selector := range rule.Selectors() {
			if decided[selector] || slices.Contains(now.chosen[selector], at) {
				continue
			}
			now.chosen[selector] = append(now.chosen[selector], at)
			decided[selector] = rule.Decides()
		}
	}
	now.assessor = health.New(inOrder...)
	if library != nil {
		now.assessor = library.New(inOrder...)
	}
	return now
}

func (f *followed) rule(at revision) *health.Rule {
	if f == nil {
		return nil
	}
	return f.compiled[at]
}

// differences are the selectors for which other rules are followed than before.
func differences(before, now *followed) []health.Selector {
	if before == nil {
		before = &followed{}
	}
	var selectors []health.Selector
	for selector, chosen := range now.chosen {
		if !slices.Equal(before.chosen[selector], chosen) {
			selectors = append(selectors, selector)
		}
	}
	for selector := range before.chosen {
		if _, still := now.chosen[selector]; !still {
			selectors = append(selectors, selector)
		}
	}
	return selectors
}

// ruleStatus computes the status of one of the rules, which are ordered by precedence.
func ruleStatus(
	rule *fleetv1alpha1.HealthRule, rules []fleetv1alpha1.HealthRule, f *followed, now time.Time,
) fleetv1alpha1.HealthRuleStatus {
	ready := metav1.Condition{
		Type: fleetv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonCompiled,
		Message: "The rule is followed", ObservedGeneration: rule.Generation,
		LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
	}
	compiled := f.rule(newRevision(rule))
	older, selector, all := f.shadowed(compiled, newRevision(rule))
	switch err := compiled.Err(); {
	case all:
		ready.Status, ready.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonShadowed
		ready.Message = fmt.Sprintf("HealthRule %q is older and for the same kind", nameAt(rules, older))
	case err != nil:
		ready.Status, ready.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonCannotCompile
		ready.Message = err.Error()
	case older != revision{}:
		ready.Message = fmt.Sprintf("The rule is followed, but not for %s: HealthRule %q is older", describeSelector(selector), nameAt(rules, older))
	}
	conditions := []metav1.Condition{ready}
	if ready.Status != metav1.ConditionTrue {
		// Only a change of the rules makes it followed.
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

// shadowed finds the first selector of a rule for which an older rule always decides, that older rule, and whether this
// holds for all of its selectors.
func (f *followed) shadowed(rule *health.Rule, at revision) (older revision, first health.Selector, all bool) {
	selectors := rule.Selectors()
	n := 0
	for _, selector := range selectors {
		chosen := f.chosen[selector]
		if slices.Contains(chosen, at) {
			continue
		}
		if n == 0 {
			older, first = chosen[len(chosen)-1], selector
		}
		n++
	}
	return older, first, n == len(selectors)
}

// describeSelector formats a selector for messages, such as "Database.db.example.org".
func describeSelector(s health.Selector) string {
	name := s.Kind
	if s.Group != "" {
		name += "." + s.Group
	}
	if s.Version != "" {
		name += " (" + s.Version + ")"
	}
	return name
}

func nameAt(rules []fleetv1alpha1.HealthRule, at revision) string {
	for i := range rules {
		if newRevision(&rules[i]) == at {
			return rules[i].Name
		}
	}
	return ""
}
