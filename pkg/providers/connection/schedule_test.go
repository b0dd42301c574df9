// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	cases := map[string]struct {
		reason   string
		failures int
		random   float64
		want     time.Duration
	}{
		"First":       {"The base, times the jitter.", 1, 0.5, 500 * time.Millisecond},
		"Third":       {"Doubled each time.", 3, 0.5, 2 * time.Second},
		"Capped":      {"Never longer than the longest.", 1000, 0.5, 150 * time.Second},
		"NeverAtOnce": {"Full jitter may be zero, waiting may not.", 4, 0, minRetry},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := backoff(tc.failures, time.Second, 5*time.Minute, tc.random); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
