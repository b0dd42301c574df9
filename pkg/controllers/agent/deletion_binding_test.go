// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAwaitsBinding(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const patience = 10 * time.Second
	cases := map[string]struct {
		reason     string
		resource   string
		conditions []any
		age        time.Duration
		want       time.Duration
	}{
		"Untouched": {reason: "Crossplane has created nothing for it.", age: time.Second},
		"Unbound":   {reason: "Crossplane may be creating the composite resource now.", resource: "x", age: time.Second, want: 9 * time.Second},
		"Bound":     {reason: "Crossplane has seen what it created.", resource: "x", conditions: []any{map[string]any{"type": "Synced"}}, age: time.Second},
		"Silent":    {reason: "Crossplane reports nothing about it.", resource: "x", age: time.Minute},
		"OtherTime": {reason: "The hub's clock may be ahead.", resource: "x", age: -time.Hour, want: patience},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			hub := &unstructured.Unstructured{Object: map[string]any{}}
			hub.SetCreationTimestamp(metav1.NewTime(now.Add(-tc.age)))
			if tc.resource != "" {
				hub.Object["spec"] = map[string]any{"resourceRef": map[string]any{"name": tc.resource}}
			}
			if tc.conditions != nil {
				hub.Object["status"] = map[string]any{"conditions": tc.conditions}
			}
			if got := awaitsBinding(hub, now, patience); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
