// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"time"
)

// Percentile is the smallest of the durations that at least p percent of them do not exceed (nearest rank); zero if
// there are none.
func Percentile(durations []time.Duration, p int) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := (len(sorted)*p + 99) / 100
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// PerSecond is a rate; zero if no time has passed.
func PerSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
