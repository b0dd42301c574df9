// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

// Failure says why something did not work, in words for a condition: no timestamps, no port numbers of this side.
type Failure struct { //nolint:errname // It is put into conditions, and only at times returned as an error.
	Reason, Message string
}

// New returns a Failure.
func New(reason, message string) *Failure { return &Failure{Reason: reason, Message: message} }

// Error implements error.
func (f *Failure) Error() string { return f.Message }
