// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestSplitProblems(t *testing.T) {
	a, b, failure := stop("A", "Reason", "a"), stop("B", "Reason", "b"), errors.New("failed")
	for name, tc := range map[string]struct {
		err      error
		problems []*condition.Error
		rest     string
	}{
		"Nothing":       {},
		"Problem":       {err: a, problems: []*condition.Error{a}},
		"Wrapped":       {err: fmt.Errorf("cannot do it: %w", a), problems: []*condition.Error{a}},
		"Failure":       {err: failure, rest: "failed"},
		"TwoProblems":   {err: errors.Join(a, nil, b), problems: []*condition.Error{a, b}},
		"Nested":        {err: errors.Join(errors.Join(nil, a), errors.Join(errors.Join(b))), problems: []*condition.Error{a, b}},
		"OneIsRetried":  {err: errors.Join(a, errors.Join(failure)), problems: []*condition.Error{a}, rest: "failed"},
		"BothAreFailed": {err: errors.Join(failure, errors.New("lost")), rest: "failed\nlost"},
		"WrappedJoin":   {err: fmt.Errorf("cannot do it: %w", errors.Join(failure)), rest: "cannot do it: failed"},
	} {
		t.Run(name, func(t *testing.T) {
			problems, rest := splitProblems(tc.err)
			if diff := cmp.Diff(tc.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if (rest == nil) != (tc.rest == "") || rest != nil && rest.Error() != tc.rest {
				t.Errorf("want the rest %q, got %v", tc.rest, rest)
			}
		})
	}
}

// TestProblemsThatAreJoined: what fails with them hides none of them.
func TestProblemsThatAreJoined(t *testing.T) {
	failure := errors.New("failed")
	res, err := run(func() (result, error) {
		return result{}, errors.Join(stop("A", "Reason", "a"), failure, stop("B", "Reason", "b"), stop("A", "Reason", "later"))
	})
	if !errors.Is(err, failure) {
		t.Errorf("want the failure to be retried, got %v", err)
	}
	got := map[string]string{}
	for _, c := range res.conditions {
		got[c.Type] = c.Message
	}
	if diff := cmp.Diff(map[string]string{"A": "a", "B": "b"}, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
