// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// setReady sets the condition Ready, which sums the other conditions up, and the condition Stalled, which is there only
// while somebody has to do something. Both are for people and for tools that know nothing of Applications: kstatus
// takes an Application for Current if it is Ready, for Failed if it is Stalled, and for InProgress otherwise.
func setReady(status *appsv1alpha1.ApplicationStatus, o Observation, set func(metav1.Condition)) {
	ready := readyCondition(status, o)
	set(ready)
	stalled := stalledCondition(status, o)
	if ready.Status == metav1.ConditionTrue || stalled == nil {
		meta.RemoveStatusCondition(&status.Conditions, appsv1alpha1.ConditionStalled)
		return
	}
	set(*stalled)
}

// readyCondition is True if everything that the Application names is installed and healthy, and its health check
// passes. Otherwise it repeats the first of these that is not so.
func readyCondition(status *appsv1alpha1.ApplicationStatus, o Observation) metav1.Condition {
	c := metav1.Condition{
		Type: appsv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: appsv1alpha1.ReasonReady,
		Message: "Everything is installed and healthy",
	}
	if o.unseen != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, o.unseen.Reason, o.unseen.Message
		return c
	}
	needed := []string{appsv1alpha1.ConditionInstalled, appsv1alpha1.ConditionHealthy}
	if o.Application.Spec.HealthCheck != nil {
		needed = append(needed, appsv1alpha1.ConditionHealthCheckPassed)
	}
	// What is known not to be so is worse than what is not known.
	for _, worse := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for _, conditionType := range needed {
			of := meta.FindStatusCondition(status.Conditions, conditionType)
			if of == nil || of.Status != worse || of.Reason == appsv1alpha1.ReasonNoComponents && namesSomething(o) {
				continue
			}
			c.Status, c.Reason, c.Message = of.Status, of.Reason, of.Message
			return c
		}
	}
	return c
}

// namesSomething is whether there is anything that an Application can be ready with. One that only has dependencies or
// a health check is ready with these, and one whose components are all left out of its health is ready when they are
// installed. One that names nothing at all is most likely not finished.
//
// One that discovers, and has found nothing, is not ready with anything else: a release that was misspelt, or that has
// gone, looks like that.
func namesSomething(o Observation) bool {
	if o.Application.Spec.Discover != nil && len(o.Components) == 0 {
		return false
	}
	return len(o.Components) > 0 || len(o.Dependencies) > 0 || o.Application.Spec.HealthCheck != nil
}

// stalledCondition says what somebody has to do something about, or is nil if everything that is not so yet may come by
// itself.
func stalledCondition(status *appsv1alpha1.ApplicationStatus, o Observation) *metav1.Condition {
	for _, conditionType := range []string{
		appsv1alpha1.ConditionComponentsWatched, appsv1alpha1.ConditionHealthy, appsv1alpha1.ConditionHealthCheckPassed,
	} {
		of := meta.FindStatusCondition(status.Conditions, conditionType)
		if of == nil || of.Status == metav1.ConditionTrue || !slices.Contains(stallingReasons(), of.Reason) {
			continue
		}
		if conditionType == appsv1alpha1.ConditionHealthCheckPassed && o.Application.Spec.HealthCheck == nil {
			continue
		}
		return &metav1.Condition{
			Type: appsv1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: of.Reason, Message: of.Message,
		}
	}
	return nil
}

// stallingReasons are those of conditions that do not become True unless somebody does something. Missing components
// and kinds that are not served are none of them: both may be applied next.
func stallingReasons() []string {
	return []string{
		appsv1alpha1.ReasonNotEnrolled,
		appsv1alpha1.ReasonKindForbidden, appsv1alpha1.ReasonKindTooLarge, appsv1alpha1.ReasonClusterScoped,
		appsv1alpha1.ReasonNotAllowed, appsv1alpha1.ReasonTooManyDiscovered, appsv1alpha1.ReasonNoInventory,
		appsv1alpha1.ReasonInventoryNotUnderstood,
		appsv1alpha1.ReasonComponentsDegraded,
		appsv1alpha1.ReasonHealthCheckRefused, appsv1alpha1.ReasonHealthCheckForbidden, appsv1alpha1.ReasonObserveOnly,
	}
}
