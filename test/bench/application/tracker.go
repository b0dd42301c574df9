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

// state is what the status of an Application says, as far as the benchmark looks.
type state struct {
	namespace, name string

	// complete is whether it tells of all three components.
	complete bool

	// ready is whether it says that the Deployment is.
	ready bool
}

type appKey struct{ namespace, name string }

// tracker follows the statuses of Applications. The events of a watch are its only source.
type tracker struct {
	mu       sync.Mutex
	complete map[appKey]bool
	waiting  map[appKey]*change

	// changed has an element when there are more that are complete.
	changed chan struct{}

	// ended has the reason for which the watch ended.
	ended chan error
}

// change is one that is on its way into a status.
type change struct {
	ready bool
	// seen has the moment at which the status told of it.
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

// expect begins to wait for what a status shall say.
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

// errSlow says that a run did not come to its end in time.
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
