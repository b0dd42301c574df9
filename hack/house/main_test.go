// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestRun prints the picture of a package, or only whether it is within the limits.
func TestRun(t *testing.T) {
	for bounds, want := range map[bool]string{true: "", false: "pkg/setmap"} {
		var out strings.Builder
		if err := run(&out, "../..", []string{"./pkg/setmap"}, false, bounds); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("bounds %t: want %q, got %q", bounds, want, got)
		}
	}
}
