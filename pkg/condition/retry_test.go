// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"testing"
	"time"
)

func TestSooner(t *testing.T) {
	for _, tc := range []struct{ a, b, want time.Duration }{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := MinNonZero(tc.a, tc.b); got != tc.want {
			t.Errorf("want the sooner of %d and %d, where zero is never, to be %d, got %d", tc.a, tc.b, tc.want, got)
		}
	}
}
