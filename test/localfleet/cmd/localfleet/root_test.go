// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/test/localfleet"
)

func TestCommands(t *testing.T) {
	var names []string
	for _, command := range newRootCommand().Commands() {
		names = append(names, command.Name())
		if command.Short == "" {
			t.Errorf("command %q does not say what it does", command.Name())
		}
	}
	slices.Sort(names)
	want := []string{"add", "down", "pause", "remove", "resume", "rotate", "status", "up"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("commands: -want, +got:\n%s", diff)
	}
}

func TestWithoutFleet(t *testing.T) {
	cases := map[string]struct {
		reason    string
		arguments []string
		wantErr   error
		wantOut   string
	}{
		"Status": {reason: "There is nothing to show.", arguments: []string{"status"}, wantErr: localfleet.ErrNoFleet},
		"Pause":  {reason: "There is nothing to pause.", arguments: []string{"pause", "w1"}, wantErr: localfleet.ErrNoFleet},
		"Add":    {reason: "There is nothing to add to.", arguments: []string{"add", "w1"}, wantErr: localfleet.ErrNoFleet},
		"Down":   {reason: "A fleet that does not exist is down already.", arguments: []string{"down"}, wantOut: "There is no fleet"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			root := newRootCommand()
			root.SetOut(&out)
			root.SetArgs(append(tc.arguments, "--dir", t.TempDir()))
			err := root.ExecuteContext(t.Context())
			if !errors.Is(err, tc.wantErr) {
				t.Errorf("%s\nwant error %v, got %v", tc.reason, tc.wantErr, err)
			}
			if !strings.Contains(out.String(), tc.wantOut) {
				t.Errorf("%s\nwant %q printed, got %q", tc.reason, tc.wantOut, out.String())
			}
		})
	}
}
