// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	firstInterval   = 10 * time.Millisecond
	longestInterval = 200 * time.Millisecond
)

// Poll checks a condition, at once and then at growing intervals, until it is met, returns an error, or the timeout has
// passed. A condition that is met soon is seen soon. One that takes long is checked five times a second: tests run side
// by side, and each check takes processor time from what the others wait for.
func Poll(ctx context.Context, timeout time.Duration, check wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	intervals := wait.Backoff{Duration: firstInterval, Factor: 1.25, Steps: math.MaxInt32, Cap: longestInterval}
	return intervals.DelayFunc().Until(ctx, true, false, check)
}
