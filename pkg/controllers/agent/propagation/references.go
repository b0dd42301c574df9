// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// ConditionReferencesResolved is written by whoever resolves the references of claims.
const ConditionReferencesResolved = commonv1alpha1.ConditionReferencesResolved

// keepReferencesResolved keeps the condition of a claim that says how far its references are resolved. It is about the
// claim, and not about the hub's object, whose own is left there.
func keepReferencesResolved(claim *unstructured.Unstructured, conditions []any) []any {
	kept := make([]any, 0, len(conditions)+1)
	for _, c := range conditions {
		if theirs, ok := c.(map[string]any); ok && theirs["type"] == ConditionReferencesResolved {
			continue
		}
		kept = append(kept, c)
	}
	if ours := ShownCondition(claim, ConditionReferencesResolved); ours != nil {
		kept = append(kept, ours)
	}
	return kept
}
