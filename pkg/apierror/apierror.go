// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apierror says what an API server's answer means for a retry, where k8s.io/apimachinery/pkg/api/errors only
// names its code.
package apierror

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// authorizer matches the authorizer's refusal. Admission plugins refuse with the same code.
var authorizer = regexp.MustCompile(`cannot [a-z:-]+ resource `) //nolint:gochecknoglobals // A constant.

// IsMissingRight reports whether an API server refused for lack of a right, and not by admission.
func IsMissingRight(err error) bool {
	return apierrors.IsForbidden(err) && authorizer.MatchString(err.Error())
}

// IsRejected reports whether an API server does not take the content of an object: it would answer the same again.
// Admission and missing rights are not about content alone.
func IsRejected(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// IsTransient reports whether an API server could not process a request now.
func IsTransient(err error) bool {
	return IsUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsResourceExpired(err)
}

// IsUnavailable reports whether an API server answered that it, or a webhook, failed or did not answer in time.
func IsUnavailable(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}

// IsNotServed reports whether an API server does not serve a kind. It is for answers to lists and to creations: to
// requests for one object, 404 can mean that the object does not exist.
func IsNotServed(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err)
}

// IsMissingObject reports whether an answer means that the object does not exist, as opposed to its kind, for which
// servers use the same code.
func IsMissingObject(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// IsMissingNamespace reports whether a write failed because its namespace does not exist.
func IsMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return status.Status().Details.Kind == "namespaces"
}

// IsAnswer reports whether an error is an API server's answer. For any other, it is unknown what the server did.
func IsAnswer(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer)
}

// Each returns the errors that an error joins, or the error alone. The functions here, and those of apierrors, only
// check the first one with an answer.
func Each(err error) []error {
	var several interface{ Unwrap() []error }
	if !errors.As(err, &several) {
		return []error{err}
	}
	var out []error
	for _, err := range several.Unwrap() {
		if err != nil {
			out = append(out, Each(err)...)
		}
	}
	return out
}
