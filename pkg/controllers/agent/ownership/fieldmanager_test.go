// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"
	"testing"
)

func TestFieldManager(t *testing.T) {
	long := strings.Repeat("x", 200)
	if got := FieldManager("0e2d"); got != "masthead-0e2d" {
		t.Errorf("want a UID to be taken as it is, got %q", got)
	}
	if got := FieldManager("a\nü"); !strings.HasPrefix(got, "masthead-a__-") {
		t.Errorf("want what the API server refuses to be replaced, got %q", got)
	}
	if a, b := FieldManager(long+"a"), FieldManager(long+"b"); a == b || len(a) > maxFieldManagerLength || len(b) > maxFieldManagerLength {
		t.Errorf("want two short names for two long identifiers, got %q and %q", a, b)
	}
	if a, b := FieldManager("a\nb"), FieldManager("a_b"); a == b {
		t.Errorf("want different names for different identifiers, got %q twice", a)
	}
}
