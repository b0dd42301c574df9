// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package exhaustive checks a decision in every situation of a bounded space, against properties that are sentences.
//
// It is for tests of pure functions. A table of cases shows that a function does what its author thought of; this shows
// what it never does. A property that is about none of the situations fails as well: it would prove nothing.
package exhaustive

import (
	"iter"
	"testing"
)

// Property is a sentence that is true in every situation that it is about.
type Property[S any] struct {
	// Sentence states it.
	Sentence string

	// When reports whether it is about a situation; nil if it is about all.
	When func(S) bool

	// Holds reports whether it is true in a situation that it is about.
	Holds func(S) bool
}

// shown is how many counterexamples of a property are shown.
const shown = 3

// Check checks properties in situations, and logs how many there were. A counterexample is formatted with %+v.
func Check[S any](tb testing.TB, situations iter.Seq[S], properties []Property[S]) {
	tb.Helper()
	about, broken := make([]int, len(properties)), make([]int, len(properties))
	n := 0
	for s := range situations {
		n++
		for i, p := range properties {
			if p.When != nil && !p.When(s) {
				continue
			}
			about[i]++
			if p.Holds(s) {
				continue
			}
			if broken[i]++; broken[i] <= shown {
				tb.Errorf("%s\nnot in %+v", p.Sentence, s)
			}
		}
	}
	for i, p := range properties {
		switch {
		case about[i] == 0:
			tb.Errorf("%s\nThis is about none of the situations.", p.Sentence)
		case broken[i] > shown:
			tb.Errorf("%s\nnot in %d of %d situations", p.Sentence, broken[i], about[i])
		}
	}
	tb.Logf("%d properties in %d situations", len(properties), n)
}
