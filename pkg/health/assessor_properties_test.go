// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
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
			// A reason can sound as if something were well.
			for _, reason := range []string{"Quux", "NoNodesAvailable"} {
				changed := withAdded(object, failed, "True", reason)
				for _, a := range []Assessor{with, without} {
					tried++
					if got := a.Assess(changed, true); got.Health == appsv1alpha1.HealthHealthy {
						t.Errorf("%s is Healthy although %s is True, with reason %s", name, failed, reason)
					}
				}
			}
		}
		if without.kinds[kind] != nil || isSummed(fields(object.Object).conditions()) {
			continue
		}
		if got := without.Assess(withAdded(object, "Quux", "False", "Quux"), true); got.Health == appsv1alpha1.HealthHealthy {
			t.Errorf("%s is Healthy although it is not known what Quux=False means", name)
		}
	}
	if tried < 1000 {
		t.Errorf("only %d objects were tried", tried)
	}
}

// TestResultsDoNotVary assesses each object several times, since a field of a map is read in another order each time.
// A Result that varies would be written again and again.
func TestResultsDoNotVary(t *testing.T) {
	library, err := NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{
		"two resizes": {Object: map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolumeClaim",
			"status": map[string]any{"phase": "Bound", "allocatedResourceStatuses": map[string]any{
				"storage": "ControllerResizeInfeasible", "example.org/iops": "NodeResizeInfeasible",
			}},
		}},
		"two failures": {Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Quux",
			"status": map[string]any{"parts": map[string]any{
				"a": map[string]any{"state": "Failed"}, "b": map[string]any{"phase": "Error"}, "c": map[string]any{"error": "It broke."},
			}},
		}},
	}
	for name, f := range fixtures(t) {
		objects[name] = f.object
	}
	a := library.New()
	for name, object := range objects {
		first := a.Assess(object, true)
		for range 20 {
			if again := a.Assess(object, true); again != first {
				t.Errorf("%s: %+v, and then %+v", name, first, again)
				break
			}
		}
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
func withAdded(object *unstructured.Unstructured, conditionType, status, reason string) *unstructured.Unstructured {
	object = object.DeepCopy()
	added := map[string]any{"type": conditionType, "status": status, "reason": reason}
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
