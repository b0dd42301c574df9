// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/references"
)

// unresolved is why a claim is not carried whose references are not resolved; nil if they are. What they fill in is
// part of what the user asks for: without it, Crossplane would provision something else. It is seen in the claim
// itself, so that no claim is carried too early because nobody has looked at its references yet, or because nobody
// resolves them.
func unresolved(claim *unstructured.Unstructured) *condition.Problem {
	pending := references.Pending(claim.Object)
	if len(pending) == 0 {
		return nil
	}
	return &condition.Problem{
		Reason: reason.ReasonReferencesUnresolved,
		Message: fmt.Sprintf("The field that spec.references[%d] fills has no value yet. The condition %s, if there is one, says why.",
			pending[0], propagation.ConditionReferencesResolved),
	}
}
