// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons why a reference is not resolved. They are the reasons of the condition ReferencesResolved; docs/references.md
// says of each what to do.
const (
	// ReasonResolved: every reference is resolved, or optional and its source is missing.
	ReasonResolved = "Resolved"

	// ReasonInvalidReference: the reference cannot be resolved whatever exists: a path or an expression is malformed, it
	// refers to its own object, or there are too many.
	ReasonInvalidReference = "InvalidReference"

	// ReasonKindNotServed: the API server does not serve the resource, or not in the version.
	ReasonKindNotServed = "KindNotServed"

	// ReasonSourceNotFound: the referenced object does not exist.
	ReasonSourceNotFound = "SourceNotFound"

	// ReasonFieldNotFound: the referenced object has no value in the field.
	ReasonFieldNotFound = "FieldNotFound"

	// ReasonNotPermitted: the object may not reference what it references.
	ReasonNotPermitted = "NotPermitted"

	// ReasonSecretNotPermitted: what a Secret holds may not be put into the field.
	ReasonSecretNotPermitted = "SecretNotPermitted"

	// ReasonForbidden: whoever resolves the reference lacks a right.
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

// maxText is how many characters of what others said are repeated.
const maxText = 512

// An Error says which reference is not resolved, and why. Its text is bounded, on one line, and holds nothing of what a
// Secret holds.
type Error struct {
	// Index of the reference in spec.references.
	Index int

	// Reason is one of the constants.
	Reason string

	// Source describes the referenced object, for example: configmaps "common-settings" in the namespace "team-a". Empty
	// if the reference itself is wrong.
	Source string

	// Path is the field that is meant, of the referenced object or of the one that is filled; empty for neither.
	Path string

	// Cause says what is wrong.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("cannot resolve spec.references[%d]: %s", e.Index, e.Detail())
}

// Detail is the error without the index.
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

// IsMissing is whether an optional reference may stay unresolved because of it.
func (e *Error) IsMissing() bool {
	return e.Reason == ReasonKindNotServed || e.Reason == ReasonSourceNotFound || e.Reason == ReasonFieldNotFound
}

// clean is the beginning of a text that others may have written, without control characters.
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

// WithoutSecrets is why the API server refused what a Result filled in. If a value was taken from a Secret, it says so
// only in general: API servers repeat the values that they refuse. Of what such an error is, errors.Is and errors.As
// still tell.
func WithoutSecrets(err error, result Result) error {
	if err == nil || !result.Secret {
		return err
	}
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		return explained{err, "the request failed; why is not said, as a Secret has to do with it"}
	}
	return explained{err, fmt.Sprintf("the API server refuses it (%s); why is not said, as a Secret has to do with it", clean(string(reason)))}
}
