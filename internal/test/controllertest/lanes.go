// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package controllertest

import (
	"flag"
	"strconv"
	"sync"
	"testing"
)

// Lanes are sets of API servers for tests that run in parallel. A test has a lane to itself until it ends, so that
// parallel tests share nothing in an API server. The next test on the same lane finds what a test leaves there.
type Lanes[S any] struct {
	open  func() (S, error)
	taken chan struct{}

	mu   sync.Mutex
	idle []S
}

// NewLanes returns a number of lanes. open starts the servers of a lane when a test needs one and none is idle.
func NewLanes[S any](number int, open func() (S, error)) *Lanes[S] {
	return &Lanes[S]{open: open, taken: make(chan struct{}, number)}
}

// Take waits for a lane and gives it to a test until the test ends. The test has to stop what it starts on the lane in
// a cleanup that is registered afterwards.
func (l *Lanes[S]) Take(tb testing.TB) S {
	tb.Helper()
	l.taken <- struct{}{}
	tb.Cleanup(func() { <-l.taken })
	lane, ok := l.pop()
	if !ok {
		var err error
		if lane, err = l.open(); err != nil {
			tb.Fatal(err)
		}
	}
	// This runs before the place is free: the test that takes the place finds this lane.
	tb.Cleanup(func() { l.push(lane) })
	return lane
}

func (l *Lanes[S]) pop() (lane S, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) == 0 {
		return lane, false
	}
	last := len(l.idle) - 1
	lane = l.idle[last]
	l.idle = l.idle[:last]
	return lane, true
}

func (l *Lanes[S]) push(lane S) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = append(l.idle, lane)
}

// Beside lets a number of tests that call t.Parallel run at once, regardless of the number of processors: tests of
// controllers mostly wait. It is for TestMain, before the flags are parsed, so that -parallel overrides it.
func Beside(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}
