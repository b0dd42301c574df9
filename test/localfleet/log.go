// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// stepLog prints one line per step, with the time since the first.
type stepLog struct {
	mu    sync.Mutex
	out   io.Writer
	clock clock.PassiveClock
	begin time.Time
}

func newStepLog(out io.Writer, c clock.PassiveClock) *stepLog {
	return &stepLog{out: out, clock: c, begin: c.Now()}
}

func (l *stepLog) printf(format string, arguments ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.out, "%5.1fs  %s\n", l.clock.Since(l.begin).Seconds(), fmt.Sprintf(format, arguments...))
}

func (f *Fleet) logf(format string, arguments ...any) { f.log.printf(format, arguments...) }
