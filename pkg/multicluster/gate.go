// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// hub is the name of the cluster in which the manager runs.
const hub = mcmanager.LocalCluster

// gateState says what a queue does with the work of a cluster.
type gateState int

const (
	// gateUnknown drops what is added.
	gateUnknown gateState = iota
	// gateClosed holds what is added.
	gateClosed
	// gateOpen dispatches what is added.
	gateOpen
)

// A SyncWaiter knows when the watches on a cluster have delivered what the cluster held when they started. Controller
// and Gate implement it.
type SyncWaiter interface {
	// WaitForSync returns nil as soon as every source that watches this instance of the cluster has delivered its
	// initial list, or has found that its kind is not served there. It returns an error if ctx or the engagement ends
	// first, or if the instance is not engaged. It waits as long as the controller has not started, and for a kind that
	// the credentials may not list it waits for good: give ctx a deadline.
	WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error
}

var _ SyncWaiter = &Gate{}

// Gate says, per cluster, whether its queued work may run now. There is one Gate per manager: the provider of clusters
// turns it, and every fair queue obeys it.
//
// A cluster is unknown (what is queued for it is dropped), closed (what is queued for it is held, nothing is lost) or
// open (dispatched). The hub is always open. A change holds for every queue when the call that made it returns: no item
// of a cluster is handed to a worker after Close or Forget returned.
//
// What is dropped comes back with the initial lists when the cluster is engaged. A controller whose hub sources make
// requests for workload clusters must hence be able to make the same requests when a cluster is engaged.
//
// multicluster-runtime has no such thing: the only signal that it gives for a cluster is the end of its context, which
// leaves the items in the queue, and the workers find out one by one that there is no such cluster.
//
// All methods are safe for concurrent use, and none but WaitIdle and WaitForSync blocks.
type Gate struct {
	mu      sync.Mutex
	states  map[mcr.ClusterName]gateState
	queues  map[gatedQueue]struct{}
	waiters []SyncWaiter
}

// gatedQueue is what a Gate needs of a queue. The Gate calls it with its own lock held, hence a queue never calls the
// Gate while it holds its lock.
type gatedQueue interface {
	setGate(name mcr.ClusterName, state gateState)
	// idle returns a channel that is closed once the queue has no item of the cluster in flight.
	idle(name mcr.ClusterName) <-chan struct{}
	inFlight(name mcr.ClusterName) int
}

// NewGate returns a Gate that knows the hub only.
func NewGate() *Gate {
	return &Gate{
		states: map[mcr.ClusterName]gateState{hub: gateOpen},
		queues: map[gatedQueue]struct{}{},
	}
}

// Open lets the work of a cluster run. Call it before the cluster is engaged, so that its initial list is not dropped,
// and when a degraded cluster has recovered: what was held since Close is dispatched in the order in which it was
// queued.
func (g *Gate) Open(name mcr.ClusterName) { g.set(name, gateOpen) }

// Close holds the work of a cluster back. What is in flight goes on; what is queued, and what is added from now on,
// waits for Open or Forget.
func (g *Gate) Close(name mcr.ClusterName) { g.set(name, gateClosed) }

// Forget purges a cluster from every queue: what is ready or delayed, its back-off and its metric series. What is in
// flight finishes and is not requeued. Adds are dropped until Open is called again.
func (g *Gate) Forget(name mcr.ClusterName) { g.set(name, gateUnknown) }

// IsOpen tells whether the work of a cluster may run now.
func (g *Gate) IsOpen(name mcr.ClusterName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.states[name] == gateOpen
}

// WaitIdle waits until no queue has an item of a cluster in flight. It changes nothing: close the gate before, in the
// same goroutine as every other change, since one that closes late would close what has been opened again meanwhile.
// The hub is never waited for.
func (g *Gate) WaitIdle(ctx context.Context, name mcr.ClusterName) error {
	if name == hub {
		return nil
	}
	g.mu.Lock()
	queues := slices.Collect(maps.Keys(g.queues))
	g.mu.Unlock()

	for _, q := range queues {
		select {
		case <-q.idle(name):
		case <-ctx.Done():
			left := 0
			for _, q := range queues {
				left += q.inFlight(name)
			}
			return fmt.Errorf("cannot wait for cluster %q, %d reconciles are still in flight: %w", name, left, context.Cause(ctx))
		}
	}
	return nil
}

// WaitForSync implements SyncWaiter over all controllers that share the Gate. A provider that replaces one instance of
// a cluster by another calls it between engaging the new one and ending the old one.
func (g *Gate) WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	g.mu.Lock()
	waiters := slices.Clone(g.waiters)
	g.mu.Unlock()

	for _, w := range waiters {
		if err := w.WaitForSync(ctx, name, cl); err != nil {
			return err
		}
	}
	return nil
}

func (g *Gate) set(name mcr.ClusterName, state gateState) {
	if name == hub {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.setLocked(name, state)
}

func (g *Gate) setLocked(name mcr.ClusterName, state gateState) {
	if g.states[name] == state {
		return
	}
	if state == gateUnknown {
		delete(g.states, name)
	} else {
		g.states[name] = state
	}
	for q := range g.queues {
		q.setGate(name, state)
	}
}

// join makes a queue obey the gate, starting with the state as it is.
func (g *Gate) join(q gatedQueue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, state := range g.states {
		q.setGate(name, state)
	}
	g.queues[q] = struct{}{}
}

// leave is the reverse of join.
func (g *Gate) leave(q gatedQueue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.queues, q)
}

func (g *Gate) addWaiter(w SyncWaiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiters = append(g.waiters, w)
}
