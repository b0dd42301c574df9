// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestFind(t *testing.T) {
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Available", "message": "It runs."}
	for name, tc := range map[string]struct {
		reason     string
		conditions any
		want       metav1.Condition
		found      bool
	}{
		"None":  {reason: "An object may have no status.", want: metav1.Condition{Type: "Ready"}},
		"Other": {reason: "Only the type counts.", conditions: []any{map[string]any{"type": "Synced", "status": "True"}}, want: metav1.Condition{Type: "Ready"}},
		"Shape": {reason: "The status is another cluster's, and may be anything.", conditions: []any{"Ready", 1}, want: metav1.Condition{Type: "Ready"}},
		"List":  {reason: "The status is another cluster's, and may be anything.", conditions: "Ready", want: metav1.Condition{Type: "Ready"}},
		"Types": {
			reason:     "A field that is no text is empty.",
			conditions: []any{map[string]any{"type": "Ready", "status": true, "reason": 1}}, want: metav1.Condition{Type: "Ready"}, found: true,
		},
		"First": {
			reason:     "Types are unique, as a rule.",
			conditions: []any{ready, map[string]any{"type": "Ready", "status": "False"}},
			want:       metav1.Condition{Type: "Ready", Status: "True", Reason: "Available", Message: "It runs."}, found: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{}}
			if tc.conditions != nil {
				obj.Object["status"] = map[string]any{"conditions": tc.conditions}
			}
			got, found := Find(obj, "Ready")
			if diff := cmp.Diff(tc.want, got); diff != "" || found != tc.found {
				t.Errorf("%s found=%v -want, +got:\n%s", tc.reason, found, diff)
			}
			if IsTrue(obj, "Ready") != (tc.want.Status == metav1.ConditionTrue) {
				t.Errorf("%s IsTrue is %v", tc.reason, IsTrue(obj, "Ready"))
			}
		})
	}
}
