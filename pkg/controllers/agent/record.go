// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// conflictsWithRecord is whether an API server refused an apply because somebody else wrote the record, or applied annotations
// without content, which nobody else may add to by an apply.
func conflictsWithRecord(err error) bool {
	return slices.ContainsFunc(propagation.ConflictCauses(err), func(c metav1.StatusCause) bool {
		return c.Field == ".metadata.annotations" || strings.HasSuffix(c.Field, "."+fleetv1alpha1.HubObjectAnnotation)
	})
}

// mayCreate is whether an object may be created for a claim that has none at a place of the hub, or why not.
//
// One that was there and is gone was deleted by somebody else: Masthead deletes only when the claim goes or moves. A new
// object gets new infrastructure. That is an empty database in place of a lost one, of which every condition says that all is
// well; so the class or the claim's owner has to want it. The owner names the object that was deleted, so that what he said
// once does not count for the next loss.
func mayCreate(claim metav1.Object, policy fleetv1alpha1.RecreatePolicy, moves bool, kind string, place ownership.Place) *condition.Problem {
	was, recorded := ownership.RecordOf(claim)
	switch {
	case !recorded, policy == fleetv1alpha1.RecreatePolicyAlways,
		claim.GetAnnotations()[fleetv1alpha1.RecreateAnnotation] == string(was.UID),
		moves && was.Namespace != place.Namespace:
		return nil
	}
	return &condition.Problem{
		Reason: reason.ReasonHubObjectDeleted,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub was deleted there, not by Masthead. No other one is created, because it "+
			"would be new and empty. Restore it in the hub, delete this claim, or annotate it with %s: %s to have a new one.",
			kind, place.Name, was.Namespace, fleetv1alpha1.RecreateAnnotation, was.UID),
	}
}
