// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ConditionReferencesResolved is the condition for an object's references: True when each is resolved, or optional with
// a missing source.
const ConditionReferencesResolved = "ReferencesResolved"

// Reasons of the condition ReferencesResolved.
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

	// ReasonAmbiguous: several objects have the labels of a selector.
	ReasonAmbiguous = "Ambiguous"

	// ReasonFieldNotFound: the referenced object has no value in the field.
	ReasonFieldNotFound = "FieldNotFound"

	// ReasonNotReady: the referenced object is not yet as the reference requires by when.
	ReasonNotReady = "NotReady"

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
