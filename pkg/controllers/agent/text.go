// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"unicode"
)

// maxForeignText is how many runes are repeated of what a workload cluster's API server said.
const maxForeignText = 256

// bounded makes what a workload cluster's API server said fit to be repeated in conditions, events and logs: it can be of any
// length, and contain what moves a terminal's cursor.
func bounded(text string) string {
	var b strings.Builder
	n := 0
	for _, c := range text {
		if n == maxForeignText {
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
func (e foreignError) Error() string { return bounded(e.error.Error()) }

// Unwrap is the error itself.
func (e foreignError) Unwrap() error { return e.error }

// asForeign bounds the text of an error that leaves this package.
func asForeign(err error) error {
	if err == nil {
		return nil
	}
	return foreignError{err}
}
