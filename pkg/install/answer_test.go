// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestProblem(t *testing.T) {
	crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	tooLarge, method := apierrors.NewRequestEntityTooLargeError("no"), apierrors.NewMethodNotSupported(crds, "create")
	badRequest, timeout, unauthorized := apierrors.NewBadRequest("no"), apierrors.NewTimeoutError("slow", 1), apierrors.NewUnauthorized("no")
	const failed = `cannot write the CustomResourceDefinition "x" in cluster "w1": `
	forbidden, invalid := apierrors.NewForbidden(crds, "x", errors.New("no")), apierrors.NewInvalid(schema.GroupKind{}, "x", nil)
	for name, tc := range map[string]struct {
		reason  string
		reasons Reasons
		err     error
		problem string
		pending bool
		message string
	}{
		"None":         {reason: "It was written.", reasons: DefinitionReasons},
		"Exists":       {reason: "The watch does not have it yet.", reasons: DefinitionReasons, err: apierrors.NewAlreadyExists(crds, "x"), pending: true},
		"Gone":         {reason: "It is gone meanwhile, or its kind is not served yet.", reasons: DefinitionReasons, err: apierrors.NewNotFound(crds, "x"), pending: true},
		"Conflict":     {reason: "The watch catches up.", reasons: DefinitionReasons, err: apierrors.NewConflict(crds, "x", errors.New("changed")), pending: true},
		"Forbidden":    {reason: "Users can add the right.", reasons: DefinitionReasons, err: forbidden, problem: fleetv1alpha1.ReasonDefinitionForbidden, message: Definition("x").Refused(forbidden)},
		"Rejected":     {reason: "Users read why.", reasons: DefinitionReasons, err: invalid, problem: fleetv1alpha1.ReasonDefinitionRejected, message: Definition("x").Refused(invalid)},
		"BadRequest":   {reason: "It will be the same next time.", reasons: DefinitionReasons, err: badRequest, problem: fleetv1alpha1.ReasonDefinitionRejected, message: Definition("x").Refused(badRequest)},
		"TooLarge":     {reason: "It will be as large next time.", reasons: DefinitionReasons, err: tooLarge, problem: fleetv1alpha1.ReasonDefinitionRejected, message: Definition("x").Refused(tooLarge)},
		"Method":       {reason: "The API server cannot do it.", reasons: DefinitionReasons, err: method, problem: fleetv1alpha1.ReasonDefinitionRejected, message: Definition("x").Refused(method)},
		"Timeout":      {reason: "A time-out passes.", reasons: DefinitionReasons, err: timeout, message: failed + timeout.Error()},
		"Unauthorized": {reason: "Other credentials help, which are on their way.", reasons: DefinitionReasons, err: unauthorized, message: failed + unauthorized.Error()},
		"NoReason":     {reason: "Without a reason, nothing is reported.", reasons: Reasons{Rejected: "R"}, err: forbidden, message: failed + forbidden.Error()},
		"NoAnswer":     {reason: "Another attempt can succeed.", reasons: DefinitionReasons, err: errors.New("refused"), message: failed + "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.reasons.Problem("write", Definition("x"), "w1", tc.err)
			if tc.pending || tc.err == nil {
				if condition.IsPending(err) != tc.pending || (err == nil) == tc.pending {
					t.Errorf("%s got %v", tc.reason, err)
				}
				return
			}
			got := ""
			if p, ok := errors.AsType[*condition.Error](err); ok {
				if got = p.Reason; p.RetryAfter == 0 {
					t.Error("want it to be retried: no event says that a right was added")
				}
			} else if !errors.Is(err, tc.err) {
				t.Errorf("want the cause to be kept, got %v", err)
			}
			if got != tc.problem || err.Error() != tc.message {
				t.Errorf("%s want %q with %q, got %q with %q", tc.reason, tc.problem, tc.message, got, err)
			}
		})
	}
}
