// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// Throttle is the rate limiter shared by all clients of one cluster, across its connections. client-go would create one
// for each kind, which would make the limit meaningless. It counts the time that requests wait.
type Throttle struct {
	flowcontrol.RateLimiter
	clock clock.PassiveClock

	mu     sync.Mutex
	waited func(time.Duration) // nil once the enrolment is gone: its series must not be re-created
}

// NewThrottle returns a Throttle. waited receives the wait of each delayed request.
func NewThrottle(qps float32, burst int, c clock.PassiveClock, waited func(time.Duration)) *Throttle {
	return &Throttle{RateLimiter: flowcontrol.NewTokenBucketRateLimiter(qps, burst), clock: c, waited: waited}
}

// Wait waits for the rate limiter, and counts the time.
func (t *Throttle) Wait(ctx context.Context) error {
	if t.TryAccept() {
		return nil
	}
	start := t.clock.Now()
	err := t.RateLimiter.Wait(ctx)
	d := t.clock.Since(start)

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waited != nil {
		t.waited(d)
	}
	return err
}

// Retire stops counting.
func (t *Throttle) Retire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waited = nil
}
