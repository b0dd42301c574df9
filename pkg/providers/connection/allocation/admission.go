// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"sync"

	"github.com/masthead-dev/masthead/pkg/fairshare"
)

// A Lane is a kind of contact with clusters. Each has places of its own, so that no kind waits for another.
type Lane int

const (
	// First are attempts to connect to clusters that have not failed yet.
	First Lane = iota
	// Retry are attempts to connect to clusters that failed before: they cost a time-out each, most likely.
	Retry
	// Probe are probes of connections whose last probe succeeded.
	Probe
	// Recovery are probes of connections whose last probe failed: most likely they cost a time-out each, too, but
	// somebody waits for the one that does not.
	Recovery
	// Lanes is how many there are.
	Lanes
)

// AttemptLane is the lane of an attempt to connect after that many failures.
func AttemptLane(failures int) Lane {
	if failures > 0 {
		return Retry
	}
	return First
}

// ProbeLane is the lane of a probe after that many failures.
func ProbeLane(failures int) Lane {
	if failures > 0 {
		return Recovery
	}
	return Probe
}

// Places returns how many places each lane has, of the number of clusters that may be tried for the first time at once.
func Places(workers int) [Lanes]int {
	half := max(1, workers/2)
	return [Lanes]int{First: workers, Retry: half, Probe: workers, Recovery: half}
}

// WorkersFor returns how many workers it takes for every place of every lane to have one, and some to spare for
// reconciles that talk to no cluster: so the lanes alone decide who waits, and never the queue.
func WorkersFor(workers int) int {
	n := max(1, workers/4)
	for _, lane := range Places(workers) {
		n += lane
	}
	return n
}

// Admission shares out contacts with clusters. In each lane no namespace of the hub, which is what a tenant has, holds
// more than its share of the places, and who holds the fewest is next. Nobody holds a worker while waiting: who finds
// no place goes on with what needs none, and is woken when it has one.
type Admission[K comparable] struct {
	wake  func(K)
	lanes [Lanes]*fairshare.Places[string]

	mu sync.Mutex
	// turns are those of the keys that wait, and of those that were woken and have not come yet.
	turns map[waiter[K]]*fairshare.Turn[string]
}

// waiter is a key that waits in a lane, at most once.
type waiter[K comparable] struct {
	key  K
	lane Lane
}

// NewAdmission makes lanes for that many first attempts at once, of which perNamespace may be of one namespace; the
// other lanes are shared in proportion.
func NewAdmission[K comparable](workers, perNamespace int, wake func(K)) *Admission[K] {
	a := &Admission[K]{wake: wake, turns: map[waiter[K]]*fairshare.Turn[string]{}}
	for lane, n := range Places(workers) {
		a.lanes[lane] = fairshare.New[string](n, (n*perNamespace+workers-1)/workers)
	}
	return a
}

// Enter asks for a place for a key of a namespace. leave has to be called after the contact. If there is no place, the
// key is woken as soon as it has one; until then it keeps its place in line, unless a reconcile settles without it.
func (a *Admission[K]) Enter(k K, namespace string, l Lane) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := waiter[K]{k, l}
	t, waits := a.turns[w]
	if !waits {
		t = a.lanes[l].Enter(namespace, func() { a.wake(k) })
	}
	if !t.Holds() {
		a.turns[w] = t
		return nil, false
	}
	delete(a.turns, w)
	return t.Leave, true
}

// Settle gives up the turns of a key in lanes in which it does not wait any more.
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
			t.Leave()
		}
	}
}
