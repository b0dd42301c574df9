// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/limits"
)

const (
	// DefaultLists is how many kinds of all clusters are listed at once by default.
	DefaultLists = 32
	// listTime is how long an unfinished list counts as in progress.
	listTime = time.Second
)

// A ListGate bounds how many kinds are listed at once by all Watchers that share it. Lists need the most memory and
// CPU, and after a start or a network failure all kinds of all clusters are listed.
//
// It is fair between clusters (Options.Account; Watchers without one count alone): the cluster with the fewest lists in
// progress is next, and among these the one that has waited longest. No cluster gets more than half of the slots, so a
// hanging one cannot take all of them.
//
// A list releases its slot when it completes or fails, or after a second, whichever is first. A longer list continues
// uncounted: it is slow, so it needs little memory and CPU, and an unresponsive cluster must not block others.
type ListGate struct {
	// places are shared among clusters, keyed by identity.
	places *limits.Semaphore[any]
}

// NewListGate returns a gate for n lists at once, at least one.
func NewListGate(n int) *ListGate {
	n = max(1, n)
	return &ListGate{places: limits.NewSemaphore[any](n, (n+1)/2)}
}

// enter waits for a slot. The caller must call the returned function to release it; enter returns nil if ctx ended
// first. A nil gate has no limit.
func (g *ListGate) enter(ctx context.Context, party any, c clock.Clock) (leave func()) {
	if g == nil {
		return func() {}
	}
	release := g.places.Wait(ctx, party)
	if release == nil {
		return nil
	}
	left := make(chan struct{})
	leave = sync.OnceFunc(func() {
		close(left)
		release()
	})
	timer := c.NewTimer(listTime)
	go func() {
		defer timer.Stop()
		select {
		case <-left:
		case <-timer.C():
			leave()
		}
	}()
	return leave
}
