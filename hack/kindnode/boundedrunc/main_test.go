// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConfiguration(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Create":  {"What containerd's shim calls.", []string{"--root", "/r", "create", "--bundle", "/b", "id"}, "/b/config.json"},
		"Joined":  {"Both forms of a flag are in use.", []string{"run", "--bundle=/b", "id"}, "/b/config.json"},
		"Here":    {"The bundle is the working folder unless it is named.", []string{"create", "id"}, "config.json"},
		"Exec":    {"An exec has a file of its own.", []string{"exec", "--process", "/p.json", "--detach", "id"}, "/p.json"},
		"Nothing": {"What starts nothing is left alone.", []string{"delete", "--force", "id"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := configuration(tc.args); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestBound(t *testing.T) {
	// Without SYS_RESOURCE, which is number 24.
	bounding, err := boundingSet("Name:\tx\nCapBnd:\t000001fffeffffff\n")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, in, want string }{
		"Container": {
			"A capability outside the bounding set is removed from every set.",
			`{"process":{"capabilities":{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"],"effective":["CAP_SYS_RESOURCE"]}}}`,
			`{"process":{"capabilities":{"bounding":["CAP_KILL"],"effective":[]}}}`,
		},
		"Process": {
			"An exec's file is a process alone, and large numbers in it stay what they are.",
			`{"capabilities":{"bounding":["CAP_BPF"]},"x":18446744073709551615}`,
			`{"capabilities":{"bounding":["CAP_BPF"]},"x":18446744073709551615}`,
		},
		"None": {"A process without capabilities stays as it is.", `{"process":{"args":["a"]}}`, `{"process":{"args":["a"]}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := bound([]byte(tc.in), bounding)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
