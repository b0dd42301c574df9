// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package exhaustive

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// recorder is a test that records its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestCheck(t *testing.T) {
	r := &recorder{TB: t}
	Check(r, slices.Values([]int{1, 2, 3, 4, 5, 6}), []Property[int]{
		{Sentence: "All are positive.", Holds: func(n int) bool { return n > 0 }},
		{Sentence: "The large are even.", When: func(n int) bool { return n > 4 }, Holds: func(n int) bool { return n%2 == 0 }},
		{Sentence: "All are large.", Holds: func(n int) bool { return n > 4 }},
		{Sentence: "The huge are odd.", When: func(n int) bool { return n > 99 }, Holds: func(n int) bool { return n%2 == 1 }},
	})
	want := []string{
		"The large are even.\nnot in 5",
		"All are large.\nnot in 1", "All are large.\nnot in 2", "All are large.\nnot in 3",
		"All are large.\nnot in 4 of 6 situations",
		"The huge are odd.\nThis is about none of the situations.",
	}
	slices.Sort(want)
	slices.Sort(r.errors)
	if !slices.Equal(r.errors, want) {
		t.Errorf("want\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(r.errors, "\n"))
	}
}
