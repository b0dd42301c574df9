// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
)

// worstHealth is the health of an Application: that of the worst component that counts, or Unknown without any.
func worstHealth(entries []componentEntry) appsv1alpha1.Health {
	worst := appsv1alpha1.Health("")
	for _, e := range entries {
		if !e.Ignored && bounds.HealthRank(e.Health) > bounds.HealthRank(worst) {
			worst = e.Health
		}
	}
	return cmp.Or(worst, appsv1alpha1.HealthUnknown)
}

// healthyCondition is the condition for the health. It is Unknown only if the health is Unknown. Suspended and
// progressing Applications are not healthy now, so for them it is False.
func healthyCondition(health appsv1alpha1.Health, components []componentEntry) metav1.Condition {
	c := metav1.Condition{Type: appsv1alpha1.ConditionHealthy, Status: metav1.ConditionFalse}
	switch health {
	case appsv1alpha1.HealthHealthy:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, appsv1alpha1.ReasonHealthy, "All components are healthy."
		return c
	case appsv1alpha1.HealthSuspended:
		c.Reason = appsv1alpha1.ReasonComponentsSuspended
	case appsv1alpha1.HealthProgressing:
		c.Reason = appsv1alpha1.ReasonComponentsProgressing
	case appsv1alpha1.HealthMissing:
		c.Reason = appsv1alpha1.ReasonComponentsMissing
	case appsv1alpha1.HealthDegraded:
		c.Reason = appsv1alpha1.ReasonComponentsDegraded
	case appsv1alpha1.HealthUnknown:
		c.Status, c.Reason = metav1.ConditionUnknown, unknownReason(components)
	}
	c.Message = componentsMessage(components)
	return c
}

// unknownReason is why the health of an Application is Unknown.
func unknownReason(components []componentEntry) string {
	counted := slices.DeleteFunc(slices.Clone(components), func(e componentEntry) bool { return e.Ignored })
	switch {
	case len(counted) == 0:
		return appsv1alpha1.ReasonNoComponents
	case slices.ContainsFunc(counted, func(e componentEntry) bool { return e.unseen }):
		return appsv1alpha1.ReasonComponentsNotWatched
	}
	return appsv1alpha1.ReasonComponentsUnknown
}
