// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// SlowInterval is how long what cannot be watched for is left alone before it is looked at again. It is jittered.
const SlowInterval = time.Minute

// SlowRetry is SlowInterval, jittered.
func SlowRetry() time.Duration { return wait.Jitter(SlowInterval, 0.5) }

// Soon is for looking again after something in a workload cluster turned out to be other than the watch had said.
const Soon = time.Second

// Sooner is the shorter of two waits, of which zero is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
