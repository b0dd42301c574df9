// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

// Failure explains an error, in a form suitable for a condition: no timestamps, no local port numbers.
type Failure struct { //nolint:errname // It is put into conditions, and only at times returned as an error.
	Reason, Message string
}

// New returns a Failure.
func New(reason, message string) *Failure { return &Failure{Reason: reason, Message: message} }

// Error implements error.
func (f *Failure) Error() string { return f.Message }
