// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/references"
)

// conditionReferencesResolved is written by whoever resolves the references of claims.
const conditionReferencesResolved = commonv1alpha1.ConditionReferencesResolved

// unresolved is why a claim is not carried whose references are not resolved; nil if they are. What they fill in is part of what the user
// asks for: without it, Crossplane would provision something else. It is seen in the claim itself, so that no claim is carried too early
// because nobody has looked at its references yet, or because nobody resolves them.
func unresolved(claim *unstructured.Unstructured) *problem {
	pending := references.Pending(claim.Object)
	if len(pending) == 0 {
		return nil
	}
	return &problem{
		reason: ReasonReferencesUnresolved,
		message: fmt.Sprintf("The field that spec.references[%d] fills has no value yet. The condition %s, if there is one, says why.",
			pending[0], conditionReferencesResolved),
	}
}

// keepReferencesResolved keeps the condition of a claim that says how far its references are resolved. It is about the claim, and not about
// the hub's object, whose own is left there.
func keepReferencesResolved(claim *unstructured.Unstructured, conditions []any) []any {
	kept := make([]any, 0, len(conditions)+1)
	for _, c := range conditions {
		if theirs, ok := c.(map[string]any); ok && theirs["type"] == conditionReferencesResolved {
			continue
		}
		kept = append(kept, c)
	}
	if ours := shownCondition(claim, conditionReferencesResolved); ours != nil {
		kept = append(kept, ours)
	}
	return kept
}
