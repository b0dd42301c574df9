// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// SlowInterval is the requeue interval for what cannot be watched. It is jittered.
const SlowInterval = time.Minute

// SlowRetry is SlowInterval, jittered.
func SlowRetry() time.Duration { return wait.Jitter(SlowInterval, 0.5) }

// Soon is the requeue interval for what a watch is about to show: after a conflict, or when an object turned out to
// differ from what the watch had reported. An event is sooner; this is in case there is none.
const Soon = time.Second

// MinNonZero returns the shorter of two waits; zero means none.
func MinNonZero(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
