// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"fmt"
)

// A kind that is synced and cannot be listed any more looks as if nothing happened to its objects. So it is noted from
// when on neither a list nor a watch is there, and the kind is Stale when that has lasted for too long. A request that
// hangs counts like one that fails, and the reflector's own attempts like those of the loop around it.

// unseen notes that nobody reports what happens to the objects of the kind, until seen. What an attempt that was ended
// goes on asking for means nothing.
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

// seen notes that a list has arrived, or that a watch has begun.
func (k *kindWatch) seen() {
	k.mu.Lock()
	stale := k.state == StateStale
	k.endBlindness()
	k.mu.Unlock()
	if stale {
		k.setState(StateSynced, "")
	}
}

// end ends the measuring for good, and waits for it.
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

// turnStale makes the kind Stale unless the time that began with blind is over.
func (k *kindWatch) turnStale(blind chan struct{}) {
	k.telling.Lock()
	defer k.telling.Unlock()
	k.mu.Lock()
	stale := k.blind == blind && k.state == StateSynced
	if stale {
		k.state = StateStale
		k.message = fmt.Sprintf("the cluster has let nobody list and watch %s for %s", k.kind, k.o.StaleAfter)
	}
	k.mu.Unlock()
	if stale {
		k.tell(Event{Type: StateChanged, Kind: k.kind, State: StateStale})
	}
}
