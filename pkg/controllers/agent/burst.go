// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// A burst is when the fleet creates claims faster than burstSize in burstWindow. The API servers, that of the hub before all, are what everybody
// waits for then. A condition AgentSynced that would be written alone, because the hub has no status yet, would be a write more for each
// claim, at the cost of claims that are not in the hub yet, and most of these writes are saved by waiting for the hub's status.
//
// A cluster has part in a burst if it creates burstShare of these claims itself: whoever creates one claim is not kept waiting for what others
// do.
const (
	burstSize   = 20
	burstShare  = 2
	burstWindow = time.Second

	// burstPatience is how long the first status of a claim waits for the hub's at most, if that long there is a burst.
	burstPatience = 30 * time.Second
)

// bursts knows which clusters create many claims right now.
type bursts struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// fleet are the times of the last creations of all clusters, last those of each.
	fleet *ring
	last  map[mcr.ClusterName]*ring
}

// ring has the times of the last creations, and begins at next.
type ring struct {
	times []time.Time
	next  int
}

func newRing(size int) *ring { return &ring{times: make([]time.Time, size)} }

func (r *ring) add(t time.Time) {
	r.times[r.next] = t
	r.next = (r.next + 1) % len(r.times)
}

// full is whether it has no time from before since.
func (r *ring) full(since time.Time) bool {
	// What stands at next is the oldest.
	return r != nil && !r.times[r.next].Before(since)
}

func newBursts(c clock.PassiveClock) *bursts {
	return &bursts{clock: c, fleet: newRing(burstSize), last: map[mcr.ClusterName]*ring{}}
}

// created notes that an object was created in the hub.
func (b *bursts) created(cluster mcr.ClusterName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last[cluster] == nil {
		b.last[cluster] = newRing(burstShare)
	}
	now := b.clock.Now()
	b.last[cluster].add(now)
	b.fleet.add(now)
}

// patience is how long the first status of a claim may wait now, if it is usually so long.
func (b *bursts) patience(cluster mcr.ClusterName, usually time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	since := b.clock.Now().Add(-burstWindow)
	if !b.fleet.full(since) || !b.last[cluster].full(since) {
		return usually
	}
	return max(usually, burstPatience)
}

// forget forgets a cluster.
func (b *bursts) forget(cluster mcr.ClusterName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, cluster)
}
