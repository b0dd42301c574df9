// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import "time"

// minRetry keeps full jitter from meaning "at once".
const minRetry = 50 * time.Millisecond

// backoff returns how long to wait after that many failures in a row: full jitter over an exponentially growing
// interval. Full jitter, rather than a jitter of some per cent, spreads the attempts of clusters that all failed at the
// same moment, for example because the hub's network did.
func backoff(failures int, base, most time.Duration, random float64) time.Duration {
	interval := base
	for i := 1; i < failures && interval < most; i++ {
		interval *= 2
	}
	interval = min(interval, most)
	return max(minRetry, time.Duration(float64(interval)*random))
}

// jitter spreads a period over 90 to 110 per cent, so that what started together drifts apart.
func jitter(d time.Duration, random float64) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*random))
}
