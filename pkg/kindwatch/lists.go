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

// acquireList waits for a place to list. The caller must call the returned function to release it; it is nil if ctx
// ended first. A list longer than listTime continues without a place: it is slow, so it needs little memory and CPU,
// and an unresponsive cluster must not block others. Without places there is no limit.
func acquireList(ctx context.Context, places *limits.Semaphore[any], party any, c clock.Clock) (leave func()) {
	if places == nil {
		return func() {}
	}
	release := places.Wait(ctx, party)
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
