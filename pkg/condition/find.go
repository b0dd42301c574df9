// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Entry returns an object's condition of a type as it is in its status, or nil. It is not a copy.
func Entry(obj *unstructured.Unstructured, conditionType string) map[string]any {
	conditions, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionType {
			return c
		}
	}
	return nil
}

// Find returns the type, status, reason and message of an object's condition, and whether the object has it.
func Find(obj *unstructured.Unstructured, conditionType string) (metav1.Condition, bool) {
	entry := Entry(obj, conditionType)
	status, _ := entry["status"].(string)
	reason, _ := entry["reason"].(string)
	message, _ := entry["message"].(string)
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}, entry != nil
}

// IsTrue reports whether an object has a condition of a type that is True.
func IsTrue(obj *unstructured.Unstructured, conditionType string) bool {
	return Entry(obj, conditionType)["status"] == string(metav1.ConditionTrue)
}
