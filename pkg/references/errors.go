// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons why a reference is not resolved. They are the reasons of the condition ReferencesResolved; docs/references.md
// says how to resolve each.
const (
	// ReasonResolved: every reference is resolved, or optional with a missing source.
	ReasonResolved = "Resolved"

	// ReasonInvalidReference: the reference cannot be resolved regardless of what exists: a path or an expression is
	// malformed, it refers to its own object, or there are too many.
	ReasonInvalidReference = "InvalidReference"

	// ReasonKindNotServed: the API server does not serve the resource, or not in the version.
	ReasonKindNotServed = "KindNotServed"

	// ReasonSourceNotFound: the referenced object does not exist.
	ReasonSourceNotFound = "SourceNotFound"

	// ReasonFieldNotFound: the referenced object has no value in the field.
	ReasonFieldNotFound = "FieldNotFound"

	// ReasonNotPermitted: the object may not reference what it references.
	ReasonNotPermitted = "NotPermitted"

	// ReasonSecretNotPermitted: a value from a Secret may not be put into the field.
	ReasonSecretNotPermitted = "SecretNotPermitted"

	// ReasonForbidden: the resolver lacks a right.
	ReasonForbidden = "Forbidden"

	// ReasonInvalidValue: the value is not text, too large, or cannot be computed.
	ReasonInvalidValue = "InvalidValue"

	// ReasonTargetRejected: the value cannot be put into the field, or the API server refuses the object with it.
	ReasonTargetRejected = "TargetRejected"

	// ReasonCycle: objects wait for each other.
	ReasonCycle = "Cycle"

	// ReasonUnavailable: the API server did not answer.
	ReasonUnavailable = "Unavailable"
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
			parts = append(parts, clean(part))
		}
	}
	if e.Cause != nil {
		parts = append(parts, clean(e.Cause.Error()))
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// IsMissing reports whether an optional reference may stay unresolved because of it.
func (e *Error) IsMissing() bool {
	return e.Reason == ReasonKindNotServed || e.Reason == ReasonSourceNotFound || e.Reason == ReasonFieldNotFound
}

// clean returns the beginning of a text that others may have written, without control characters.
func clean(text string) string {
	out, n := strings.Builder{}, 0
	for _, c := range text {
		if n++; n > maxText {
			return out.String() + "..."
		}
		if unicode.IsControl(c) {
			c = ' '
		}
		out.WriteRune(c)
	}
	return out.String()
}

// reasonOf returns the reason for an API server's error.
func reasonOf(err error) string {
	switch {
	case meta.IsNoMatchError(err):
		return ReasonKindNotServed
	case apierrors.IsNotFound(err):
		return ReasonSourceNotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ReasonForbidden
	}
	return ReasonUnavailable
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
