// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/fairshare"
)

// listTime is how long a list that does not come to an end counts among those that are under way.
const listTime = 10 * time.Second

// A ListGate bounds how many kinds are listed at once by all Watchers that share it. Lists are when memory and
// processor time are needed most, and after a start or a break in the network all kinds of all clusters are listed.
//
// It is fair between Watchers: whoever has the fewest lists under way is next, and among these whoever waits longest.
// No Watcher has more than half of the places, so a cluster that hangs cannot have all of them.
//
// A list gives its place back when it is complete or has failed, or after ten seconds, whichever is first. One that
// takes longer goes on and is not counted any more: it is slow, so it needs little of what the gate is there to bound,
// and a cluster that never answers must not keep others waiting.
type ListGate struct {
	// places are shared out among Watchers, by what identifies them.
	places *fairshare.Places[any]
}

// NewListGate returns a gate for n lists at once, at least one.
func NewListGate(n int) *ListGate {
	n = max(1, n)
	return &ListGate{places: fairshare.New[any](n, (n+1)/2)}
}

// enter waits for a place. The function that it returns gives the place back, and has to be called; it returns nil if
// ctx ended first. A nil gate has places for all.
func (g *ListGate) enter(ctx context.Context, party any, c clock.Clock) (leave func()) {
	if g == nil {
		return func() {}
	}
	granted := make(chan struct{})
	turn := g.places.Enter(party, func() { close(granted) })
	if !turn.Holds() {
		select {
		case <-granted:
		case <-ctx.Done():
			turn.Leave()
			return nil
		}
	}

	left := make(chan struct{})
	leave = sync.OnceFunc(func() {
		close(left)
		turn.Leave()
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
