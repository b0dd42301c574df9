// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestWorkloadProblem(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Right":     {reason: "A right can be granted.", err: apierrors.NewForbidden(resource, "a", errors.New(`User "x" cannot create resource "secrets" in API group ""`)), want: fleetv1alpha1.ReasonWorkloadForbidden},
		"Policy":    {reason: "A policy says no every time.", err: apierrors.NewForbidden(resource, "a", errors.New("denied")), want: fleetv1alpha1.ReasonSecretRejected},
		"Immutable": {reason: "An immutable Secret stays immutable.", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil), want: fleetv1alpha1.ReasonSecretRejected},
		"Namespace": {reason: "A namespace that goes does not come back soon.", err: apierrors.NewForbidden(resource, "a", errors.New("because it is being terminated")), want: fleetv1alpha1.ReasonSecretRejected},
		"Busy":      {reason: "What passes is retried.", err: apierrors.NewTooManyRequests("later", 1)},
		"Conflict":  {reason: "So is what somebody else changed.", err: apierrors.NewConflict(resource, "a", errors.New("changed"))},
		"Broken":    {reason: "And what did not arrive.", err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := OfWorkload(fmt.Errorf("cannot: %w", tc.err), "write the Secret", fleetv1alpha1.ReasonSecretRejected); p != nil {
				got = p.Reason
			}
			if got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
