// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"strings"
	"unicode"
)

// MaxForeignText is the maximum length in runes of repeated text from a workload cluster's API server.
const MaxForeignText = 256

// BoundedText sanitizes text from a workload cluster's API server for conditions, events and logs: it can be of any
// length, and contain terminal control characters.
func BoundedText(text string) string {
	var b strings.Builder
	n := 0
	for _, c := range text {
		if n == MaxForeignText {
			b.WriteString("...")
			break
		}
		if !unicode.IsGraphic(c) {
			c = ' '
		}
		b.WriteRune(c)
		n++
	}
	return b.String()
}

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
