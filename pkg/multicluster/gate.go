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

// gateState says what a queue does with the items of a cluster.
type gateState int

const (
	// gateUnknown drops what is added.
	gateUnknown gateState = iota
	// gateClosed holds what is added.
	gateClosed
	// gateOpen dispatches what is added.
	gateOpen
)

// A SyncWaiter waits until the watches on a cluster have delivered their initial lists. Instances and Gate implement
// it.
type SyncWaiter interface {
	// WaitForSync returns nil as soon as every source that watches this instance of the cluster has delivered its initial
	// list, or has found that its kind is not served there. It returns an error if ctx or the engagement ends first, or if
	// the instance is not engaged. It blocks until the controller has started, and forever for a kind that the credentials
	// may not list: give ctx a deadline.
	WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error
}

var _ SyncWaiter = &Gate{}

// Gate controls, per cluster, whether queued requests may run now. There is one Gate per manager: the cluster provider
// sets it, and every fair queue obeys it.
//
// A cluster is unknown (items are dropped), closed (items are held, none is lost) or open (items are dispatched). The
// hub is always open. A change applies to every queue when its call returns: no item of a cluster is handed to a worker
// after Close or Forget returned.
//
// Dropped items are added again by the initial lists when the cluster is engaged. A controller whose hub sources create
// requests for workload clusters must hence create the same requests when a cluster is engaged.
//
// multicluster-runtime has no equivalent: its only signal is the end of a cluster's context, which leaves the items in
// the queue, where each fails separately because the cluster is gone.
//
// All methods are safe for concurrent use, and none but WaitIdle and WaitForSync blocks.
type Gate struct {
	mu      sync.Mutex
	states  map[mcr.ClusterName]gateState
	queues  map[gatedQueue]struct{}
	waiters []SyncWaiter
}

// gatedQueue is the interface of a queue for a Gate. The Gate calls it with its own lock held, so a queue never calls
// the Gate with its lock held.
type gatedQueue interface {
	setGate(name mcr.ClusterName, state gateState)
	// idle returns a channel that is closed once the queue has no item of the cluster in flight.
	idle(name mcr.ClusterName) <-chan struct{}
	inFlight(name mcr.ClusterName) int
}

// NewGate returns a Gate in which only the hub is known.
func NewGate() *Gate {
	return &Gate{
		states: map[mcr.ClusterName]gateState{hub: gateOpen},
		queues: map[gatedQueue]struct{}{},
	}
}

// Open dispatches the items of a cluster. Call it before the cluster is engaged, so that its initial list is not
// dropped, and when a degraded cluster has recovered: items held since Close are dispatched in the order in which they
// were queued.
func (g *Gate) Open(name mcr.ClusterName) { g.set(name, gateOpen) }

// Close holds the items of a cluster. Items in flight continue; queued and new items wait for Open or Forget.
func (g *Gate) Close(name mcr.ClusterName) { g.set(name, gateClosed) }

// Forget purges a cluster from every queue: ready and delayed items, back-off and metric series. Items in flight finish
// and are not requeued. Adds are dropped until Open is called again.
func (g *Gate) Forget(name mcr.ClusterName) { g.set(name, gateUnknown) }

// IsOpen reports whether the items of a cluster may run now.
func (g *Gate) IsOpen(name mcr.ClusterName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.states[name] == gateOpen
}

// WaitIdle waits until no queue has an item of a cluster in flight. It does not close the gate: close it first, in the
// same goroutine as every other change, since a late Close could close a gate that was reopened meanwhile. It never
// waits for the hub.
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

// WaitForSync implements SyncWaiter over all controllers that share the Gate. A provider that replaces an instance of a
// cluster calls it after engaging the new one and before ending the old one.
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

// join makes a queue obey the gate, starting with the current state.
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
