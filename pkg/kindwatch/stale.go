// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"fmt"
)

// A synced kind that can no longer be listed looks as if its objects did not change. So the time without a list or
// watch is measured, and the kind becomes Stale when it is too long. A hanging request counts as a failed one, and so
// does the time between two watches of one attempt.

// unseen records that the kind is neither listed nor watched, until seen. Requests of an ended attempt are ignored.
func (k *kindWatch) unseen(attempt context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.blind != nil || k.state != StateSynced || k.ended || attempt.Err() != nil {
		return
	}
	blind := make(chan struct{})
	k.blind = blind
	timer := k.o.Clock.NewTimer(k.o.StaleAfter)
	k.timing.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			k.turnStale(blind)
		case <-blind:
		}
	})
}

// seen records that a list has arrived, or that a watch has begun.
func (k *kindWatch) seen() {
	k.mu.Lock()
	stale := k.state == StateStale
	k.endBlindness()
	if k.trouble.listed.IsZero() {
		k.trouble.listed = k.o.Clock.Now() // A resumed watch stands for the list of its attempt.
	}
	k.mu.Unlock()
	if stale {
		k.setState(StateSynced, "")
	}
}

// end stops tracking staleness for good, and waits for the timers.
func (k *kindWatch) end() {
	k.mu.Lock()
	k.ended = true
	k.endBlindness()
	k.mu.Unlock()
	k.timing.Wait()
}

// endBlindness ends the time that unseen began, if it did. The caller holds mu.
func (k *kindWatch) endBlindness() {
	if k.blind != nil {
		close(k.blind)
		k.blind = nil
	}
}

// turnStale makes the kind Stale unless the period of blind has ended.
func (k *kindWatch) turnStale(blind chan struct{}) {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	stale := k.blind == blind && k.state == StateSynced
	if stale {
		k.state = StateStale
		k.message = fmt.Sprintf("%s could be neither listed nor watched for %s", k.kind, k.o.StaleAfter)
	}
	k.mu.Unlock()
	if stale {
		k.notify(Event{Type: StateChanged, Kind: k.kind, State: StateStale})
	}
}
