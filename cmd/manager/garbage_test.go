// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"testing"
)

func TestCollectGarbageEarlier(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	for name, tc := range map[string]struct {
		reason, variable string
		want             int
	}{
		"Default":  {reason: "Without a word of the operator, memory counts.", want: gcPercent},
		"Operator": {reason: "What the operator says counts, which the runtime has read already.", variable: "200", want: 100},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetGCPercent(100)
			collectGarbageEarlier(func(string) string { return tc.variable })
			if got := debug.SetGCPercent(100); got != tc.want {
				t.Errorf("%s want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}
