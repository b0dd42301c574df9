// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

// Error is why something is not as it should be, in a condition's terms: a reason, which is one of the API's constants,
// and a message for users, without times and local port numbers.
type Error struct {
	Reason, Message string

	// Unknown says that it is not known whether something is as it should be. The agent uses it for whether the hub
	// matches the claim.
	Unknown bool
}

// NewError returns an Error.
func NewError(reason, message string) *Error { return &Error{Reason: reason, Message: message} }

// Error implements error.
func (e *Error) Error() string { return e.Message }
