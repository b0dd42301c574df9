// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"sync"

	"github.com/masthead-dev/masthead/pkg/fairshare"
)

// A lane is a kind of contact with clusters. Each has places of its own, so that no kind waits for another.
type lane int

const (
	// laneFirst are attempts to connect to clusters that have not failed yet.
	laneFirst lane = iota
	// laneRetry are attempts to connect to clusters that failed before: they cost a time-out each, most likely.
	laneRetry
	// laneProbe are probes of connections whose last probe succeeded.
	laneProbe
	// laneRecovery are probes of connections whose last probe failed: most likely they cost a time-out each, too, but
	// somebody waits for the one that does not.
	laneRecovery
	lanes
)

// attemptLane is the lane of an attempt to connect after that many failures.
func attemptLane(failures int) lane {
	if failures > 0 {
		return laneRetry
	}
	return laneFirst
}

// probeLane is the lane of a probe after that many failures.
func probeLane(failures int) lane {
	if failures > 0 {
		return laneRecovery
	}
	return laneProbe
}

// places returns how many places each lane has, of the number of clusters that may be tried for the first time at once.
func places(workers int) [lanes]int {
	half := max(1, workers/2)
	return [lanes]int{laneFirst: workers, laneRetry: half, laneProbe: workers, laneRecovery: half}
}

// workersFor returns how many workers it takes for every place of every lane to have one, and some to spare for
// reconciles that talk to no cluster: so the lanes alone decide who waits, and never the queue.
func workersFor(workers int) int {
	n := max(1, workers/4)
	for _, lane := range places(workers) {
		n += lane
	}
	return n
}

// admission shares out contacts with clusters. In each lane no namespace of the hub, which is what a tenant has, holds
// more than its share of the places, and who holds the fewest is next. Nobody holds a worker while waiting: who finds
// no place goes on with what needs none, and is woken when it has one.
type admission struct {
	wake  func(Key)
	lanes [lanes]*fairshare.Places[string]

	mu sync.Mutex
	// turns are those of the keys that wait, and of those that were woken and have not come yet.
	turns map[waiter]*fairshare.Turn[string]
}

// waiter is a key that waits in a lane, at most once.
type waiter struct {
	Key
	lane lane
}

// newAdmission makes lanes for that many first attempts at once, of which perNamespace may be of one namespace; the
// other lanes are shared in proportion.
func newAdmission(workers, perNamespace int, wake func(Key)) *admission {
	a := &admission{wake: wake, turns: map[waiter]*fairshare.Turn[string]{}}
	for lane, n := range places(workers) {
		a.lanes[lane] = fairshare.New[string](n, (n*perNamespace+workers-1)/workers)
	}
	return a
}

// enter asks for a place for a key. leave has to be called after the contact. If there is no place, the key is woken as
// soon as it has one; until then it keeps its place in line, unless a reconcile settles without it.
func (a *admission) enter(k Key, l lane) (leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := waiter{k, l}
	t, waits := a.turns[w]
	if !waits {
		t = a.lanes[l].Enter(k.Namespace, func() { a.wake(k) })
	}
	if !t.Holds() {
		a.turns[w] = t
		return nil, false
	}
	delete(a.turns, w)
	return t.Leave, true
}

// settle gives up the turns of a key in lanes in which it does not wait any more.
func (a *admission) settle(k Key, waits [lanes]bool) {
	for l := range lanes {
		if waits[l] {
			continue
		}
		w := waiter{k, l}
		a.mu.Lock()
		t, ok := a.turns[w]
		delete(a.turns, w)
		a.mu.Unlock()
		if ok {
			t.Leave()
		}
	}
}
