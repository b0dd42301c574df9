// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

const (
	podAutoscalerKind = "HorizontalPodAutoscaler"

	// autoscalerConditions is the annotation in which version v1 holds the conditions of v2, as JSON.
	autoscalerConditions = "autoscaling.alpha.kubernetes.io/conditions"
)

// podAutoscaler is not known to kstatus.
func podAutoscaler(h fields) (Result, bool) {
	conditions := h.parts("status", "conditions")
	if text := h.text("metadata", "annotations", autoscalerConditions); len(conditions) == 0 && text != "" {
		var list []any
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return unknown(appsv1alpha1.ReasonUnreadable, "The annotation "+autoscalerConditions+" is not JSON"), true
		}
		conditions = fields{"conditions": list}.parts("conditions")
	}
	able := conditionIn(conditions, string(autoscalingv2.AbleToScale))
	active := conditionIn(conditions, string(autoscalingv2.ScalingActive))
	switch {
	case able.isFalse():
		return degraded(reasonOr(able.reason, appsv1alpha1.ReasonScalingFailed), messageOr(able.message, "The target cannot be scaled")), true
	case active.isFalse() && active.reason == appsv1alpha1.ReasonScalingDisabled:
		return suspended(appsv1alpha1.ReasonScalingDisabled, messageOr(active.message, "The target is scaled to zero")), true
	case active.isFalse():
		return degraded(reasonOr(active.reason, appsv1alpha1.ReasonScalingFailed), messageOr(active.message, "The replicas cannot be computed")), true
	case !able.isTrue():
		return notSeen(), true
	default:
		return healthy(), true
	}
}

// disruptionBudget does not use kstatus, which always reports current. Some budgets are meant to allow no disruption; a
// budget that cannot be computed is misconfigured.
func disruptionBudget(b fields) (Result, bool) {
	for _, c := range b.parts("status", "conditions") {
		if c.text("type") == policyv1.DisruptionAllowedCondition && c.text("reason") == policyv1.SyncFailedReason {
			return degraded(appsv1alpha1.ReasonSyncFailed, messageOr(c.text("message"), "The budget cannot be computed")), true
		}
	}
	if b.at("status", "observedGeneration") == nil {
		return notSeen(), true
	}
	return healthy(), true
}

// customResourceDefinition leaves the rest to kstatus, for which one whose schema is not structural is current,
// although the API server offers less for it.
func customResourceDefinition(d fields) (Result, bool) {
	if c := d.condition(string(apiextensionsv1.NonStructuralSchema)); c.isTrue() {
		return degraded(reasonOr(c.reason, string(apiextensionsv1.NonStructuralSchema)), messageOr(c.message, "The schema is not structural")), true
	}
	return Result{}, false
}
