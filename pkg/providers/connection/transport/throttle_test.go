// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestThrottleCountsTheTimeThatRequestsWait(t *testing.T) {
	var waited time.Duration
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	limiter := NewThrottle(0.001, 1, clock, func(d time.Duration) { waited += d })
	if err := limiter.Wait(t.Context()); err != nil || waited != 0 {
		t.Fatalf("the first request does not wait: %v %s", err, waited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := 0
	limiter.waited = func(time.Duration) { called++ }
	if err := limiter.Wait(ctx); err == nil {
		t.Error("the wait must end with the context")
	}
	limiter.Retire()
	_ = limiter.Wait(ctx)
	if called != 1 {
		t.Errorf("want one wait counted, and none after the end, got %d", called)
	}
}
