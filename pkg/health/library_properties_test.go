// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/healthcases"
	"github.com/masthead-dev/masthead/pkg/health"
)

// conditionsThatDoNotCount are the conditions that may be unknown or about an older generation while an object of their
// rule is Healthy, with the reason.
func conditionsThatDoNotCount() map[string]string {
	const ready = "Ready sums it up"
	return map[string]string{
		"Launched of NodeClaim.karpenter.sh":                                           ready,
		"Registered of NodeClaim.karpenter.sh":                                         ready,
		"Initialized of NodeClaim.karpenter.sh":                                        ready,
		"EKSControlPlaneReady of AWSManagedControlPlane.controlplane.cluster.x-k8s.io": ready,
		"PredictorReady of InferenceService.serving.kserve.io":                         ready,
		"DeploymentsAvailable of KnativeServing.operator.knative.dev":                  ready,
		"UpToDate of Machine.cluster.x-k8s.io":                                         "it says whether the Machine will be replaced, and not whether it works",
		"InstallPlanMissing of Subscription.operators.coreos.com":                      "plans may be removed once they have been installed",
		"FailedScale of CloneSet.apps.kruise.io":                                       "all replicas are available",
		"FailedCreatePod of StatefulSet.apps.kruise.io":                                "all replicas are available",
		"FailedUpdatePod of StatefulSet.apps.kruise.io":                                "all replicas are available",
		"Active of DatadogMetric.datadoghq.com":                                        "it says whether something uses the metric",
		"Compliant of Policy.policy.open-cluster-management.io":                        "status.compliant sums it up",
		"Compliant of OperatorPolicy.policy.open-cluster-management.io":                "status.compliant sums it up",
	}
}

// conditionsThatMayBeOld are those that count but may be about an older generation.
func conditionsThatMayBeOld() map[string]string {
	return map[string]string{
		"Available of DeploymentConfig.apps.openshift.io":   "the conditions of the kind have no observedGeneration",
		"Progressing of DeploymentConfig.apps.openshift.io": "the conditions of the kind have no observedGeneration",
		"Progressing of SpinApp.core.spinkube.dev":          "it is that of the Deployment and has no observedGeneration",
	}
}

// TestLibraryTrustsWhatIsKnownAndNew changes every fixture that is Healthy: its status becomes one about an older
// generation, or a condition that was True becomes Unknown, including Ready if the rule asks for it. None of them may
// still be Healthy. Where nothing reports on a kind, so that the rule says that it is healthy regardless of its status,
// nothing can become unknown.
func TestLibraryTrustsWhatIsKnownAndNew(t *testing.T) {
	library := newLibrary(t)
	fixtures, err := healthcases.Fixtures("library/testdata")
	if err != nil {
		t.Fatal(err)
	}
	unknown, old := conditionsThatDoNotCount(), conditionsThatMayBeOld()
	maps.Copy(old, unknown)
	assessor := library.New()
	used := sets.New[string]()
	for _, project := range library.Projects {
		for _, rule := range project.Rules {
			if rule.Healthy == "true" || rule.Healthy == "" {
				continue
			}
			selector := health.Compile(project.Name, rule.HealthRuleSpec).Selectors()[0]
			key := healthcases.Key(selector.Group, selector.Kind)
			check := func(changed *unstructured.Unstructured, reasons map[string]string, name string) {
				t.Helper()
				got := assessor.Assess(changed, true)
				if got.Health != appsv1alpha1.HealthHealthy {
					return
				}
				used.Insert(name)
				if reasons[name] == "" {
					t.Errorf("%s is Healthy, and no reason is listed for it: %v", name, changed.Object["status"])
				}
			}
			for _, fixture := range fixtures[key] {
				if fixture.Want != appsv1alpha1.HealthHealthy {
					continue
				}
				object := fixture.Object(healthcases.Example(selector.Group, selector.Version, selector.Kind))
				check(withOldStatus(object), nil, key)
				for _, name := range trueConditions(object) {
					check(withCondition(object, name, func(c map[string]any) { c["status"] = "Unknown" }), unknown, name+" of "+key)
					check(withOldCondition(object, name), old, name+" of "+key)
				}
				expressions := fmt.Sprint(rule.Degraded, rule.Suspended, rule.Progressing, rule.Healthy)
				if mentions(expressions, "Ready") && !hasCondition(object, "Ready") {
					check(withUnknownReady(object), unknown, "Ready of "+key)
				}
			}
		}
	}
	for _, reasons := range []map[string]string{unknown, old} {
		for _, name := range slices.Sorted(maps.Keys(reasons)) {
			if !used.Has(name) {
				t.Errorf("there is a reason for %s, which is not Healthy", name)
			}
		}
	}
}

// mentions reports whether expressions use a condition of a type.
func mentions(expressions, conditionType string) bool {
	return strings.Contains(expressions, "('"+conditionType+"')")
}

// trueConditions are the types of the conditions of an object that are True.
func trueConditions(object *unstructured.Unstructured) []string {
	var names []string
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, value := range list {
		if c, ok := value.(map[string]any); ok && c["status"] == "True" {
			names = append(names, fmt.Sprint(c["type"]))
		}
	}
	return names
}

func hasCondition(object *unstructured.Unstructured, name string) bool {
	has := false
	withConditions(object, func(c map[string]any) { has = has || c["type"] == name })
	return has
}

// withCondition is a copy of an object with one of its conditions changed.
func withCondition(object *unstructured.Unstructured, name string, change func(map[string]any)) *unstructured.Unstructured {
	return withConditions(object, func(c map[string]any) {
		if c["type"] == name {
			change(c)
		}
	})
}

func withConditions(object *unstructured.Unstructured, change func(map[string]any)) *unstructured.Unstructured {
	object = object.DeepCopy()
	status, _ := object.Object["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for _, value := range list {
		if c, ok := value.(map[string]any); ok {
			change(c)
		}
	}
	return object
}

const generation, older = 7, 6

// withOldCondition is a copy of an object with one of its conditions about an older generation than the others.
func withOldCondition(object *unstructured.Unstructured, name string) *unstructured.Unstructured {
	object = withConditions(object, func(c map[string]any) {
		c["observedGeneration"] = int64(generation)
		if c["type"] == name {
			c["observedGeneration"] = int64(older)
		}
	})
	object.SetGeneration(generation)
	return object
}

// withOldStatus is a copy of an object with a status about an older generation.
func withOldStatus(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetGeneration(generation)
	status, ok := object.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		object.Object["status"] = status
	}
	status["observedGeneration"] = int64(older)
	return object
}

// withUnknownReady is a copy of an object with a condition Ready that is Unknown.
func withUnknownReady(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	status, ok := object.Object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		object.Object["status"] = status
	}
	list, _ := status["conditions"].([]any)
	status["conditions"] = append(list, map[string]any{"type": "Ready", "status": "Unknown"})
	return object
}
