// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/healthcases"
)

// TestHealthyFixturesHeedConditionsThatNothingKnows adds one condition of a type that no kind has to each object that
// is Healthy. One that is True, and whose type says failure, outweighs every rule of the library and every check of a
// kind. One that is False can mean anything, and only who knows the kind can disregard it: its controller, by a Ready
// that is True, or a rule or check for the kind.
func TestHealthyFixturesHeedConditionsThatNothingKnows(t *testing.T) {
	library, err := NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	with, without := library.New(), newAssessor(nil, nil)
	tried := 0
	for name, object := range healthyObjects(t) {
		kind := object.GroupVersionKind().GroupKind()
		if without.bare.Has(kind) || kind == applicationKind() {
			continue // Of the one only the metadata is read; the other's conditions are Masthead's own.
		}
		for _, failed := range []string{"QuuxFailed", "ErrorWhileQuuxing", "quux.example.org/Degraded", "NotHealthy", "Unreachable"} {
			changed := withAdded(object, failed, "True")
			for _, a := range []Assessor{with, without} {
				tried++
				if got := a.Assess(changed, true); got.Health == appsv1alpha1.HealthHealthy {
					t.Errorf("%s is Healthy although %s is True", name, failed)
				}
			}
		}
		if without.kinds[kind] != nil || isSummed(fields(object.Object).conditions()) {
			continue
		}
		if got := without.Assess(withAdded(object, "Quux", "False"), true); got.Health == appsv1alpha1.HealthHealthy {
			t.Errorf("%s is Healthy although it is not known what Quux=False means", name)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d objects were tried", tried)
	}
}

// healthyObjects are the objects of all fixtures that are Healthy, with the library or without it.
func healthyObjects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := map[string]*unstructured.Unstructured{}
	for name, f := range fixtures(t) {
		if f.Want.Health == appsv1alpha1.HealthHealthy {
			objects[name] = f.object
		}
	}
	cases, err := healthcases.OfFixtures("library/testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Want == string(appsv1alpha1.HealthHealthy) {
			objects[c.Name] = c.Object
		}
	}
	return objects
}

// withAdded is a copy of an object with a condition more.
func withAdded(object *unstructured.Unstructured, conditionType, status string) *unstructured.Unstructured {
	object = object.DeepCopy()
	added := map[string]any{"type": conditionType, "status": status, "reason": strings.TrimPrefix(conditionType, "quux.example.org/")}
	if _, is := object.Object["status"].(map[string]any); !is {
		object.Object["status"] = map[string]any{}
	}
	place := object.Object["status"].(map[string]any)
	if list, beside := object.Object["conditions"].([]any); beside {
		object.Object["conditions"] = append(list, added)
		return object
	}
	list, _ := place["conditions"].([]any)
	place["conditions"] = append(list, added)
	return object
}
