// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// maxText is the maximum number of characters repeated of foreign text.
const maxText = 512

// An Error says which reference is not resolved, and why. Its text is bounded, on one line, and holds no values from
// Secrets.
type Error struct {
	// Index of the reference in spec.references; negative if it is not known which one.
	Index int

	// Reason is one of the constants.
	Reason string

	// Source describes the referenced object, for example: configmaps "common-settings" in the namespace "team-a". Empty
	// if the reference itself is wrong.
	Source string

	// Path is the field in question, of the referenced object or of the filled one; empty for neither.
	Path string

	// Cause says what is wrong.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Index < 0 {
		return "cannot apply the resolved values: " + e.Detail()
	}
	return fmt.Sprintf("cannot resolve spec.references[%d]: %s", e.Index, e.Detail())
}

// Detail returns the error without the index.
func (e *Error) Detail() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{e.Source, e.Path} {
		if part != "" {
			parts = append(parts, condition.Text(part, maxText))
		}
	}
	if e.Cause != nil {
		parts = append(parts, condition.Text(e.Cause.Error(), maxText))
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// IsMissing reports whether an optional reference may stay unresolved because of it.
func (e *Error) IsMissing() bool {
	switch e.Reason {
	case commonv1alpha1.ReasonKindNotServed, commonv1alpha1.ReasonSourceNotFound, commonv1alpha1.ReasonFieldNotFound, commonv1alpha1.ReasonNotReady:
		return true
	}
	return false
}

// errorReason returns the reason for an API server's error.
func errorReason(err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return commonv1alpha1.ReasonKindNotServed
	case apierrors.IsNotFound(err):
		return commonv1alpha1.ReasonSourceNotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return commonv1alpha1.ReasonForbidden
	}
	return commonv1alpha1.ReasonUnavailable
}

// brief returns an error for readers who see the object's name beside it.
func brief(err error) error {
	if apierrors.IsNotFound(err) {
		return explained{err, "it does not exist"}
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Reason == metav1.StatusReasonForbidden {
		return explained{err, "reading it is forbidden"}
	}
	return err
}

// explained is an error in other words.
type explained struct {
	error

	words string
}

func (e explained) Error() string { return e.words }

func (e explained) Unwrap() error { return e.error }
