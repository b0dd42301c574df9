// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// A burst is when the fleet creates claims in the hub, or brings them their first status, faster than burstSize in
// burstWindow. The API servers, that of the hub before all, are what everybody waits for then. A condition AgentSynced
// that would be written alone, because the hub has no status yet, would be a write more for each claim, at the cost of
// claims that are not in the hub yet, and nearly all of these writes are saved by waiting for the hub's status.
//
// A cluster has part in a burst if burstShare of this are its own, in shareWindow: whoever creates one claim is not
// kept waiting for what others do. It has part in it until burstLinger after the last sign of it: a hub that stalls for
// a second has not become idle.
const (
	burstSize   = 20
	burstWindow = time.Second
	burstShare  = 2
	shareWindow = 5 * time.Second
	BurstLinger = 5 * time.Second

	// burstPatience is how long the first status of a claim waits for the hub's at most, if that long there is a burst.
	burstPatience = 2 * time.Minute
)

// Bursts knows which clusters have part in a burst right now.
type Bursts struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// fleet are the last times of all clusters.
	fleet    *ring
	clusters map[mcr.ClusterName]*share
}

// share is what one cluster has to do with bursts.
type share struct {
	own *ring
	// inBurst is when there was a sign of a burst last in which the cluster has part.
	inBurst time.Time
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
	return !r.times[r.next].Before(since)
}

// NewBursts returns one that has seen no burst.
func NewBursts(c clock.PassiveClock) *Bursts {
	return &Bursts{clock: c, fleet: newRing(burstSize), clusters: map[mcr.ClusterName]*share{}}
}

// Sign notes that an object was created in the hub for a claim of a cluster, or that the claim got its first status.
func (b *Bursts) Sign(cluster mcr.ClusterName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.clusters[cluster]
	if of == nil {
		of = &share{own: newRing(burstShare)}
		b.clusters[cluster] = of
	}
	now := b.clock.Now()
	of.own.add(now)
	b.fleet.add(now)
	if b.fleet.full(now.Add(-burstWindow)) && of.own.full(now.Add(-shareWindow)) {
		of.inBurst = now
	}
}

// Patience is how long the first status of a claim may wait now, if it is usually so long.
func (b *Bursts) Patience(cluster mcr.ClusterName, usually time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.clusters[cluster]
	if of == nil || b.clock.Since(of.inBurst) >= BurstLinger {
		return usually
	}
	return max(usually, burstPatience)
}

// Forget forgets a cluster.
func (b *Bursts) Forget(cluster mcr.ClusterName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clusters, cluster)
}
