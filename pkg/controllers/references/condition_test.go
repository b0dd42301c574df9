// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/references"
)

func TestCondition(t *testing.T) {
	timeout := apierrors.NewTimeoutError("10.0.0.1:53172 did not answer", 0)
	cases := map[string]struct {
		reason     string
		of         outcome
		wantStatus metav1.ConditionStatus
		want       string
	}{
		"Resolved": {reason: "Nothing else is to say.", wantStatus: metav1.ConditionTrue, want: "All references are resolved"},
		"Unwatched": {
			reason: "A field that follows its source would be stale silently.", of: outcome{unwatched: "the manager may not list and watch configmaps"},
			wantStatus: metav1.ConditionTrue,
			want: "All references are resolved; changes of their sources are noticed within two minutes only, " +
				"since the manager may not list and watch configmaps",
		},
		"Read": {
			reason: "The error of a request differs from one to the next.", wantStatus: metav1.ConditionUnknown,
			of:   outcome{failed: &references.Error{Index: 1, Reason: commonv1alpha1.ReasonUnavailable, Cause: timeout}},
			want: "The API server did not answer about spec.references[1]",
		},
		"Applied": {
			reason: "Only the kind of error is the same each time.", wantStatus: metav1.ConditionUnknown,
			of:   outcome{failed: &references.Error{Index: -1, Reason: commonv1alpha1.ReasonUnavailable, Cause: timeout}},
			want: "The API server did not apply the resolved values: Timeout",
		},
		"NoAnswer": {
			reason: "There is no kind of error.", wantStatus: metav1.ConditionUnknown,
			of:   outcome{failed: &references.Error{Index: -1, Reason: commonv1alpha1.ReasonUnavailable, Cause: errors.New("10.0.0.1:53172: EOF")}},
			want: "The API server did not apply the resolved values",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := newCondition(1, tc.of); got.Status != tc.wantStatus || got.Message != tc.want {
				t.Errorf("%s Want %s %q, got %s %q", tc.reason, tc.wantStatus, tc.want, got.Status, got.Message)
			}
		})
	}
}
