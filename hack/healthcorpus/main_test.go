// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const folder = "testdata/cases"

// The matrices count the results of both, with the library, without it, and without the rules of the case's project.
// Each case on which they differ has a line; those that Masthead reports as Healthy come first.
func TestReport(t *testing.T) {
	var out strings.Builder
	if err := run(&out, []string{"--want-cases=7", folder}); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/cases.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(trimmed(string(want)), trimmed(out.String())); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// trimmed is a text without the spaces at the ends of its lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func TestRun(t *testing.T) {
	cases := map[string]struct {
		reason    string
		arguments []string
		want      string
	}{
		"OtherNumber": {
			reason: "A folder that has lost cases proves less.", arguments: []string{"--want-cases=8", folder}, want: "there are 7 cases, and 8 are wanted",
		},
		"Empty":      {reason: "No case is a mistake.", arguments: []string{t.TempDir()}, want: "there are no cases in the folder"},
		"TwoFolders": {reason: "One folder is judged.", arguments: []string{folder, folder}, want: "usage: healthcorpus"},
		"UnknownMode": {
			reason: "A mode that does not exist is reported.", arguments: []string{"--mode=all", folder}, want: `there is no mode "all"`,
		},
		"UnknownFlag": {reason: "An unknown flag is reported.", arguments: []string{"--cases=1"}, want: "flag provided but not defined"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := run(&strings.Builder{}, tc.arguments)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
