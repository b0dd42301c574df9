// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"time"

	"k8s.io/utils/clock"
)

// attemptClock is the clock of a reflector. Its After ends with the attempt, too: a reflector whose watch-list request
// is refused backs off for up to a minute without checking its context (watchList in k8s.io/client-go/tools/cache). A
// kind of a disconnected cluster would take that long to stop.
type attemptClock struct {
	clock.Clock
	kind *kindWatch
}

// After fires after d, or as soon as the current attempt ends.
func (c attemptClock) After(d time.Duration) <-chan time.Time {
	c.kind.mu.Lock()
	over := c.kind.over
	c.kind.mu.Unlock()
	fired := make(chan time.Time, 1)
	timer := c.NewTimer(d)
	c.kind.timing.Go(func() {
		defer timer.Stop()
		select {
		case now := <-timer.C():
			fired <- now
		case <-over:
			fired <- c.Now()
		}
	})
	return fired
}
