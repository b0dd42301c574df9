// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// setReady sets the condition Ready, which summarizes the other conditions, and the condition Stalled, which is present
// only while someone has to act. Both serve people and generic tools: for kstatus, an Application is Current if Ready,
// Failed if Stalled, and InProgress otherwise.
func setReady(status *appsv1alpha1.ApplicationStatus, o Observation, set func(metav1.Condition)) {
	set(readyCondition(status, o))
	stalled := stalledCondition(status, o)
	if stalled == nil {
		meta.RemoveStatusCondition(&status.Conditions, appsv1alpha1.ConditionStalled)
		return
	}
	set(*stalled)
}

// readyCondition is True if everything that the Application names is installed and healthy, and its health check
// passes. Otherwise it repeats the first condition that fails.
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
	// False is worse than Unknown.
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

// namesSomething reports whether an Application names anything that can make it ready. With only dependencies or a
// health check it is ready with these; with all components left out of its health, once they are installed. One that
// names nothing at all is most likely unfinished.
//
// One that discovers, but has found nothing, is never ready: its release may be misspelt or deleted.
func namesSomething(o Observation) bool {
	if o.Application.Spec.Discover != nil && len(o.Components) == 0 {
		return false
	}
	return len(o.Components) > 0 || len(o.Dependencies) > 0 || o.Application.Spec.HealthCheck != nil
}

// stalledCondition says what needs action; nil if everything may become ready by itself.
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

// stallingReasons are the reasons of conditions that become True only if someone acts. Missing components and kinds
// that are not served are not among them: both may be applied next.
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
