// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// A burst is when a cluster creates claims faster than burstSize in burstWindow. The API servers are what everybody waits for
// then. A condition AgentSynced that would be written alone, because the hub has no status yet, would be a write more for each
// claim, at the cost of claims that are not in the hub yet, and most of these writes are saved by waiting for the hub's status.
const (
	burstSize   = 20
	burstWindow = time.Second

	// burstPatience is how long the first status of a claim waits for the hub's at most, if that long there is a burst.
	burstPatience = 30 * time.Second
)

// bursts knows which clusters create many claims right now.
type bursts struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// last are the times of the last creations of each cluster, in a ring that begins at next.
	last map[mcr.ClusterName]*ring
}

type ring struct {
	times [burstSize]time.Time
	next  int
}

func newBursts(c clock.PassiveClock) *bursts {
	return &bursts{clock: c, last: map[mcr.ClusterName]*ring{}}
}

// created notes that an object was created in the hub.
func (b *bursts) created(cluster mcr.ClusterName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.last[cluster]
	if r == nil {
		r = &ring{}
		b.last[cluster] = r
	}
	r.times[r.next] = b.clock.Now()
	r.next = (r.next + 1) % burstSize
}

// patience is how long the first status of a claim may wait now, if it is usually so long.
func (b *bursts) patience(cluster mcr.ClusterName, usually time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.last[cluster]
	// What stands at next is the oldest.
	if r == nil || r.times[r.next].IsZero() || b.clock.Since(r.times[r.next]) > burstWindow {
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
