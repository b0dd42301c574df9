// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// In a burst, the fleet creates claims in the hub, or writes their first status, faster than burstSize in burstWindow.
// The API servers, above all the hub's, are the bottleneck then. Writing AgentSynced alone before the hub has a status
// would cost one more write for each claim and delay claims that are not in the hub yet. Waiting for the hub's status
// saves nearly all of these writes.
//
// A cluster has part in a burst if burstShare of these events are its own within shareWindow: a cluster that creates a
// single claim does not wait for others. It has part until BurstLinger after its last event in a burst: a hub that
// stalls for a second is not idle.
const (
	burstSize   = 20
	burstWindow = time.Second
	burstShare  = 2
	shareWindow = 5 * time.Second
	BurstLinger = 5 * time.Second

	// burstPatience is the longest time that the first status of a claim waits for the hub's during a burst.
	burstPatience = 2 * time.Minute
)

// Bursts tracks which clusters have part in a burst.
type Bursts struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// fleet holds the last times of all clusters.
	fleet    *ring
	clusters map[mcr.ClusterName]*share
}

// share is one cluster's part in bursts.
type share struct {
	own *ring
	// inBurst is the time of the cluster's last event in a burst.
	inBurst time.Time
}

// ring holds the times of the last events; the oldest is at next.
type ring struct {
	times []time.Time
	next  int
}

func newRing(size int) *ring { return &ring{times: make([]time.Time, size)} }

func (r *ring) add(t time.Time) {
	r.times[r.next] = t
	r.next = (r.next + 1) % len(r.times)
}

// full reports whether no time is before since.
func (r *ring) full(since time.Time) bool {
	// The oldest is at next.
	return !r.times[r.next].Before(since)
}

// NewBursts returns Bursts without events.
func NewBursts(c clock.PassiveClock) *Bursts {
	return &Bursts{clock: c, fleet: newRing(burstSize), clusters: map[mcr.ClusterName]*share{}}
}

// Sign records that an object was created in the hub for a claim of a cluster, or that the claim got its first status.
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

// Patience returns how long the first status of a claim may wait now; usually is the value outside bursts.
func (b *Bursts) Patience(cluster mcr.ClusterName, usually time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.clusters[cluster]
	if of == nil || b.clock.Since(of.inBurst) >= BurstLinger {
		return usually
	}
	return max(usually, burstPatience)
}

// Forget drops a cluster.
func (b *Bursts) Forget(cluster mcr.ClusterName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clusters, cluster)
}
