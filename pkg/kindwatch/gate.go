// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// listTime is how long a list that does not come to an end counts among those that are under way.
const listTime = 10 * time.Second

// A ListGate bounds how many kinds are listed at once by all Watchers that share it. Lists are when memory and processor time
// are needed most, and after a start or a break in the network all kinds of all clusters are listed.
//
// It is fair between Watchers: whoever has the fewest lists under way is next, and among these whoever waits longest. No Watcher
// has more than half of the places, so a cluster that hangs cannot have all of them.
//
// A list gives its place back when it is complete or has failed, or after ten seconds, whichever is first. One that takes longer goes
// on and is not counted any more: it is slow, so it needs little of what the gate is there to bound, and a cluster that never
// answers must not keep others waiting.
type ListGate struct {
	share int

	mu   sync.Mutex
	free int

	// held is how many places each Watcher has, by what identifies it.
	held map[any]int

	// queue is who waits, the longest first.
	queue []*turn
}

// turn is one kind that waits. granted is closed when it has a place.
type turn struct {
	party   any
	granted chan struct{}
}

// NewListGate returns a gate for n lists at once, at least one.
func NewListGate(n int) *ListGate {
	n = max(1, n)
	return &ListGate{share: (n + 1) / 2, free: n, held: map[any]int{}}
}

// enter waits for a place. The function that it returns gives the place back, and has to be called; it returns nil if ctx ended
// first. A nil gate has places for all.
func (g *ListGate) enter(ctx context.Context, party any, c clock.Clock) (leave func()) {
	if g == nil {
		return func() {}
	}
	t := &turn{party: party, granted: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, t)
	g.grant()
	g.mu.Unlock()

	select {
	case <-t.granted:
	case <-ctx.Done():
		g.withdraw(t)
		return nil
	}

	left := make(chan struct{})
	leave = sync.OnceFunc(func() {
		close(left)
		g.leave(party)
	})
	timer := c.NewTimer(listTime)
	go func() {
		defer timer.Stop()
		select {
		case <-left:
		case <-timer.C():
			leave()
		}
	}()
	return leave
}

// grant gives free places to those who wait. The caller holds mu.
func (g *ListGate) grant() {
	for g.free > 0 {
		next := -1
		for i, t := range g.queue {
			if held := g.held[t.party]; held < g.share && (next < 0 || held < g.held[g.queue[next].party]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		t := g.queue[next]
		g.queue = slices.Delete(g.queue, next, next+1)
		g.free--
		g.held[t.party]++
		close(t.granted)
	}
}

func (g *ListGate) leave(party any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.giveBack(party)
}

// giveBack frees a place. The caller holds mu.
func (g *ListGate) giveBack(party any) {
	g.free++
	if g.held[party]--; g.held[party] == 0 {
		delete(g.held, party)
	}
	g.grant()
}

// withdraw takes back a turn, which may have been granted meanwhile.
func (g *ListGate) withdraw(t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, t); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		return
	}
	g.giveBack(t.party)
}
