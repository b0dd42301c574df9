// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apierror

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestClasses(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	is := map[string]func(error) bool{
		"Answer": IsAnswer, "MissingNamespace": IsMissingNamespace, "MissingObject": IsMissingObject, "MissingRight": IsMissingRight,
		"NotServed": IsNotServed, "Rejected": IsRejected, "Transient": IsTransient, "Unavailable": IsUnavailable,
	}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"None":      {reason: "Success is none of them."},
		"Network":   {reason: "What the server did is unknown.", err: errors.New("connection refused")},
		"Right":     {reason: "The authorizer names the resource.", err: apierrors.NewForbidden(pods, "a", errors.New(`User "x" cannot create resource "pods" in API group ""`)), want: []string{"Answer", "MissingRight"}},
		"Admission": {reason: "An admission plugin uses the authorizer's code.", err: apierrors.NewForbidden(pods, "a", errors.New("denied")), want: []string{"Answer"}},
		"Invalid":   {reason: "The same content is invalid again.", err: apierrors.NewInvalid(schema.GroupKind{}, "a", nil), want: []string{"Answer", "Rejected"}},
		"TooLarge":  {reason: "The same content is too large again.", err: apierrors.NewRequestEntityTooLargeError("x"), want: []string{"Answer", "Rejected"}},
		"Conflict":  {reason: "The object has changed.", err: apierrors.NewConflict(pods, "a", nil), want: []string{"Answer"}},
		"Busy":      {reason: "A busy server works.", err: apierrors.NewTooManyRequests("x", 1), want: []string{"Answer", "Transient"}},
		"Webhook":   {reason: "A webhook that is down is answered with 500.", err: apierrors.NewInternalError(errors.New("x")), want: []string{"Answer", "Transient", "Unavailable"}},
		"Timeout":   {reason: "The server answered that it was too slow.", err: apierrors.NewTimeoutError("x", 1), want: []string{"Answer", "Transient", "Unavailable"}},
		"Object":    {reason: "Only the caller knows whether it requested an object.", err: apierrors.NewNotFound(pods, "a"), want: []string{"Answer", "MissingObject", "NotServed"}},
		"Namespace": {reason: "The object that does not exist is the namespace.", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), want: []string{"Answer", "MissingNamespace", "MissingObject", "NotServed"}},
		"Kind":      {reason: "404 without a status is about the path.", err: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", pods, "a", "404 page not found", 0, true), want: []string{"Answer", "NotServed"}},
		"NoMatch":   {reason: "Discovery knows no such kind.", err: &meta.NoKindMatchError{}, want: []string{"NotServed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for class, f := range is {
				wrapped := tc.err
				if wrapped != nil {
					wrapped = fmt.Errorf("cannot: %w", tc.err)
				}
				if f(wrapped) {
					got = append(got, class)
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
