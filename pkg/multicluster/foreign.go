// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"strings"
	"unicode"
)

// MaxForeignText is how many runes are repeated of what a workload cluster's API server said.
const MaxForeignText = 256

// BoundedText makes what a workload cluster's API server said fit to be repeated in conditions, events and logs: it can
// be of any length, and contain what moves a terminal's cursor.
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

// foreignError is an error whose text a workload cluster may have chosen. It can be asked for its cause like any other.
type foreignError struct{ error }

// Error is the text, bounded.
func (e foreignError) Error() string { return BoundedText(e.error.Error()) }

// Unwrap is the error itself.
func (e foreignError) Unwrap() error { return e.error }

// AsForeign bounds the text of an error, which keeps its cause. Controllers do it with the errors that leave them.
func AsForeign(err error) error {
	if err == nil {
		return nil
	}
	return foreignError{err}
}
