// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// state is the part of the status of an Application that the benchmark reads.
type state struct {
	namespace, name string

	// complete is whether the status lists all three components.
	complete bool

	// ready is whether the status reports the Deployment as ready.
	ready bool
}

type appKey struct{ namespace, name string }

// tracker follows the statuses of Applications. The events of a watch are its only source.
type tracker struct {
	mu       sync.Mutex
	complete map[appKey]bool
	waiting  map[appKey]*change

	// changed has an element when more Applications are complete.
	changed chan struct{}

	// ended has the reason for which the watch ended.
	ended chan error
}

// change is a change that a status does not show yet.
type change struct {
	ready bool
	// seen has the moment at which the status showed it.
	seen chan time.Time
}

func newTracker() *tracker {
	return &tracker{
		complete: map[appKey]bool{}, waiting: map[appKey]*change{},
		changed: make(chan struct{}, 1), ended: make(chan error, 1),
	}
}

// event takes a status.
func (t *tracker) event(s state, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := appKey{s.namespace, s.name}
	if s.complete && !t.complete[key] {
		t.complete[key] = true
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}
	if c := t.waiting[key]; c != nil && s.complete && c.ready == s.ready {
		delete(t.waiting, key)
		c.seen <- now
	}
}

// expect begins to wait for a status to show a change.
func (t *tracker) expect(key appKey, ready bool) <-chan time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &change{ready: ready, seen: make(chan time.Time, 1)}
	t.waiting[key] = c
	return c.seen
}

func (t *tracker) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.complete)
}

// errSlow is returned when a run did not finish in time.
var errSlow = errors.New("it takes too long")

// wait waits until the statuses of so many Applications are complete, or until the program has ended.
func (t *tracker) wait(ctx context.Context, n int, patience time.Duration, exited <-chan struct{}) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for t.count() < n {
		select {
		case <-t.changed:
		case err := <-t.ended:
			return err
		case <-exited:
			return fmt.Errorf("the program has ended; %d of %d Applications had a status", t.count(), n)
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return errors.Join(errSlow, fmt.Errorf("after %s, %d of %d Applications had a status", patience, t.count(), n))
		}
	}
	return nil
}
