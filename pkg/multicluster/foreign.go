// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import "github.com/masthead-dev/masthead/pkg/condition"

// MaxForeignText is the maximum length in runes of repeated text from a workload cluster's API server.
const MaxForeignText = 256

// BoundedText is condition.Text for text from a workload cluster's API server.
func BoundedText(text string) string { return condition.Text(text, MaxForeignText) }

// foreignError is an error whose text a workload cluster may control. It can be unwrapped like any other.
type foreignError struct{ error }

// Error returns the bounded text.
func (e foreignError) Error() string { return BoundedText(e.error.Error()) }

// Unwrap returns the original error.
func (e foreignError) Unwrap() error { return e.error }

// AsForeign bounds the text of an error, which keeps its cause. Controllers apply it to the errors that they return.
func AsForeign(err error) error {
	if err == nil {
		return nil
	}
	return foreignError{err}
}
