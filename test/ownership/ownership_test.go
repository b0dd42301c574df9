// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"testing"
)

func is(want string) func(string) bool { return func(owner string) bool { return owner == want } }

func TestHistory(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		because string
		do      func(h *History)
		// wrong is whether that is wrong if changes are observed late, wrongLive if they are observed when they are made.
		wrong, wrongLive bool
	}{
		"Owned": {because: "An owner may report.", do: func(h *History) {
			h.Changed("n", "a")
			h.Reported("c", "n", is("a"))
		}},
		"Ahead": {because: "A change that is observed late may have been made before the report.", do: func(h *History) {
			h.Reported("c", "n", is("a"))
			h.Changed("n", "a")
		}, wrongLive: true},
		"Behind": {because: "A report may be about what was, if the claim has not reported since.", do: func(h *History) {
			h.Changed("n", "a")
			h.Changed("n", Unowned)
			h.Reported("c", "n", is("a"))
		}},
		"Never": {because: "A report of what never was is wrong.", do: func(h *History) {
			h.Changed("n", "b")
			h.Reported("c", "n", is("a"))
		}, wrong: true, wrongLive: true},
		"Back": {because: "A claim's reports do not go back.", do: func(h *History) {
			h.Changed("n", "a")
			h.Changed("n", "b")
			h.Reported("c", "n", is("b"))
			h.Reported("c", "n", is("a"))
		}, wrong: true, wrongLive: true},
		"Other": {because: "The report of one claim says nothing of when another's is about.", do: func(h *History) {
			h.Changed("n", "a")
			h.Changed("n", "b")
			h.Reported("c", "n", is("b"))
			h.Reported("d", "n", is("a"))
		}},
	} {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/Live=%t", name, live), func(t *testing.T) {
				t.Parallel()
				h := &History{Live: live}
				tc.do(h)
				wrong := tc.wrong
				if live {
					wrong = tc.wrongLive
				}
				if err := h.Check(); (err != nil) != wrong {
					t.Errorf("%s %v", tc.because, err)
				}
			})
		}
	}
}
