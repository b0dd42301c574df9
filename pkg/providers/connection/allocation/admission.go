// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"context"
	"sync"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// A Lane is a kind of contact with clusters. Each lane has its own places, so that no kind waits for another.
type Lane int

const (
	// First are attempts to connect to clusters that have not failed yet.
	First Lane = iota
	// Retry are attempts to connect to clusters that failed before: each most likely takes a time-out.
	Retry
	// Probe are probes of connections whose last probe succeeded, and took no long time.
	Probe
	// Recovery are probes of other connections: each most likely takes a time-out, too, but work waits for those that
	// recover.
	Recovery
	// Replace are attempts to replace a connection. The place is held until the old connection has ended: meanwhile, a
	// cluster has two.
	Replace
	// Offboard are clusters that are offboarded. They wait in goroutines of their own.
	Offboard
	// Lanes is the number of lanes.
	Lanes
)

// AttemptLane returns the lane of an attempt to connect after that many failures.
func AttemptLane(failures int) Lane {
	if failures > 0 {
		return Retry
	}
	return First
}

// ProbeLane returns the lane of a probe, after one that failed or took long or after one that did neither.
func ProbeLane(failedOrSlow bool) Lane {
	if failedOrSlow {
		return Recovery
	}
	return Probe
}

// Places returns the number of places of each lane, given the number of concurrent first attempts.
func Places(workers int) [Lanes]int {
	half := max(1, workers/2)
	return [Lanes]int{First: workers, Retry: half, Probe: workers, Recovery: half, Replace: half, Offboard: half}
}

// Wait waits for a place in a lane until ctx ends; nil then. Call leave after the contact. No worker may wait.
func (a *Admission[K]) Wait(ctx context.Context, namespace string, l Lane) (leave func()) {
	return a.lanes[l].Wait(ctx, namespace)
}

// WorkersFor returns the number of workers: one for every place of every lane, and some for reconciles without contact.
// So only the lanes make enrolments wait, never the queue.
func WorkersFor(workers int) int {
	n := max(1, workers/4)
	for l, places := range Places(workers) {
		if Lane(l) == Offboard {
			continue
		}
		n += places
	}
	return n
}

// Admission limits concurrent contacts with clusters. In each lane no namespace of the hub (a tenant) holds more than
// its share of the places, and the one with the fewest is next. Waiting blocks no worker: a key without a place
// continues with steps that need none, and is requeued when it gets one.
type Admission[K comparable] struct {
	wake  func(K)
	lanes [Lanes]*limits.Semaphore[string]

	mu sync.Mutex
	// turns are the turns of waiting keys, and of requeued keys that have not entered yet.
	turns map[waiter[K]]*limits.Waiter[string]
}

// waiter is a key that waits in a lane, at most once.
type waiter[K comparable] struct {
	key  K
	lane Lane
}

// NewAdmission makes lanes for that many concurrent first attempts, of which perNamespace may be of one namespace; the
// other lanes are shared in proportion.
func NewAdmission[K comparable](workers, perNamespace int, wake func(K)) *Admission[K] {
	a := &Admission[K]{wake: wake, turns: map[waiter[K]]*limits.Waiter[string]{}}
	for lane, n := range Places(workers) {
		a.lanes[lane] = limits.NewSemaphore[string](n, (n*perNamespace+workers-1)/workers)
	}
	return a
}

// Enter requests a place for a key of a namespace. Call leave after the contact. Without a free place, the key is
// requeued when it gets one; until then it keeps its place in line, unless a reconcile settles without it.
func (a *Admission[K]) Enter(k K, namespace string, l Lane) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := waiter[K]{k, l}
	t, waits := a.turns[w]
	if !waits {
		t = a.lanes[l].Acquire(namespace, func() { a.wake(k) })
	}
	if !t.Holds() {
		a.turns[w] = t
		return nil, false
	}
	delete(a.turns, w)
	return t.Release, true
}

// Settle gives up the turns of a key in lanes in which it no longer waits.
func (a *Admission[K]) Settle(k K, waits [Lanes]bool) {
	for l := range Lanes {
		if waits[l] {
			continue
		}
		w := waiter[K]{k, l}
		a.mu.Lock()
		t, ok := a.turns[w]
		delete(a.turns, w)
		a.mu.Unlock()
		if ok {
			t.Release()
		}
	}
}
