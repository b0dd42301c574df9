// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/references"
)

// unresolved returns why a claim with unresolved references is not pushed; nil if they are resolved. The fields they
// fill are part of the user's intent: without them, Crossplane would provision something else. This is read from the
// claim itself, so that no claim is pushed early because its references are not processed yet, or never are.
func unresolved(claim *unstructured.Unstructured) *condition.Error {
	pending := references.Pending(claim.Object)
	if len(pending) == 0 {
		return nil
	}
	return &condition.Error{
		Reason: fleetv1alpha1.ReasonReferencesUnresolved,
		Message: fmt.Sprintf("spec.references[%d] is not resolved yet. The condition %s, if there is one, says why.",
			pending[0], commonv1alpha1.ConditionReferencesResolved),
	}
}
