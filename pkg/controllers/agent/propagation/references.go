// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// keepReferencesResolved keeps the claim's condition about resolving its references, which its resolver writes. It is
// about the claim; the one of the hub's object is not propagated.
func keepReferencesResolved(claim *unstructured.Unstructured, conditions []any) []any {
	kept := make([]any, 0, len(conditions)+1)
	for _, c := range conditions {
		if theirs, ok := c.(map[string]any); ok && theirs["type"] == commonv1alpha1.ConditionReferencesResolved {
			continue
		}
		kept = append(kept, c)
	}
	if ours := condition.Entry(claim, commonv1alpha1.ConditionReferencesResolved); ours != nil {
		kept = append(kept, runtime.DeepCopyJSON(ours)) // The claim is the cache's.
	}
	return kept
}
