// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeaning(t *testing.T) {
	for name, tc := range map[string]struct{ reason, comment, want string }{
		"Colon":   {"The name is in the first column.", "ReasonSynced: the hub holds it.\n", "The hub holds it."},
		"Means":   {"Some comments say what it means.", "ReasonPaused means: it is paused.", "It is paused."},
		"Several": {"One comment can be about several.", "ReasonA, ReasonB and ReasonC: that is\nthe worst.", "That is\nthe worst."},
		"Of":      {"What else it says stays.", "ReasonReady of the condition Ready: all is well.", "Of the condition Ready: all is well."},
		"Group":   {"A comment of a group names none.", "Reasons of the condition Healthy.", "Reasons of the condition Healthy."},
	} {
		t.Run(name, func(t *testing.T) {
			if got := meaning(tc.comment); got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestComments(t *testing.T) {
	document := "kind: ClusterRole\n# Of the role.\nrules:\n# Of two\n# rules.\n- apiGroups: [a]\n- apiGroups: [b]\n# Of one.\n- apiGroups: [c]\n"
	want := []string{" Of two\n rules.\n", " Of two\n rules.\n", " Of one.\n"}
	if diff := cmp.Diff(want, comments(document)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCell(t *testing.T) {
	if got, want := paragraph(strings.Repeat("word ", 24)+"another "+strings.Repeat("x", 130)), strings.Repeat("word ", 23)+"word\nanother\n"+strings.Repeat("x", 130); got != want {
		t.Errorf("want a paragraph in lines that are no longer than they must be, got %q", got)
	}
	if got, want := cell("a |\n b <c> *"), `a \| b &lt;c> \*`; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
