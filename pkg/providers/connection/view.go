// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// view holds what readers see of the enrolled clusters: snapshots, connections, and recent refusals. It notifies
// subscribers of changes.
type view struct {
	clock     clock.PassiveClock
	metrics   *metrics
	announcer announcer

	mu          sync.RWMutex
	clusters    map[mcr.ClusterName]Cluster
	inClass     objects.Index[string, mcr.ClusterName]
	engaged     map[mcr.ClusterName]*connected
	refusals    map[mcr.ClusterName]datedRefusal
	subscribers []func(mcr.ClusterName)
}

// datedRefusal is a Refusal and the time when it was last true.
type datedRefusal struct {
	Refusal
	at time.Time
}

func newView(c clock.PassiveClock, m *metrics, a announcer) *view {
	return &view{
		clock: c, metrics: m, announcer: a,
		clusters: map[mcr.ClusterName]Cluster{},
		inClass:  objects.Index[string, mcr.ClusterName]{},
		engaged:  map[mcr.ClusterName]*connected{},
		refusals: map[mcr.ClusterName]datedRefusal{},
	}
}

// connection returns the connection of an engaged cluster, or an error as documented for Provider.Get.
func (v *view) connection(name mcr.ClusterName) (cluster.Cluster, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if c, ok := v.engaged[name]; ok {
		return c, nil
	}
	if _, ok := v.clusters[name]; ok {
		return nil, fmt.Errorf("cluster %q: %w", name, multicluster.ErrClusterNotConnected)
	}
	return nil, fmt.Errorf("cluster %q: %w", name, mcr.ErrClusterNotFound)
}

// connections returns the connections of all engaged clusters.
func (v *view) connections() []*connected {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Collect(maps.Values(v.engaged))
}

// list returns all clusters, sorted by name.
func (v *view) list() []Cluster {
	v.mu.RLock()
	defer v.mu.RUnlock()
	all := make([]Cluster, 0, len(v.clusters))
	for _, name := range slices.Sorted(maps.Keys(v.clusters)) {
		all = append(all, v.clusters[name])
	}
	return all
}

func (v *view) lookup(name mcr.ClusterName) (Cluster, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	c, ok := v.clusters[name]
	return c, ok
}

func (v *view) ofClass(class string) []mcr.ClusterName {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.inClass.Values(class)
}

func (v *view) subscribe(fn func(mcr.ClusterName)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.subscribers = append(v.subscribers, fn)
}

// engage makes a connection available to readers.
func (v *view) engage(name mcr.ClusterName, conn *connected) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.engaged[name] = conn
}

// disengage removes a cluster's connection and refusals from the view.
func (v *view) disengage(name mcr.ClusterName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.engaged, name)
	delete(v.refusals, name)
}

// publish makes a record visible to readers.
func (v *view) publish(r *record) {
	c := r.snapshot()
	v.metrics.setHeld(r)
	v.mu.Lock()
	old, known := v.clusters[r.name]
	if known {
		v.inClass.Delete(old.Enrolment.Class, r.name)
	}
	c.Refused = v.refusals[r.name].Refusal
	v.clusters[r.name] = c
	v.inClass.Insert(c.Enrolment.Class, r.name)
	subscribers := v.subscribers
	v.mu.Unlock()
	if known && old.Equal(c) {
		return
	}
	v.metrics.setState(r.name, old.State, c.State)
	v.announcer.changed(old, c, &r.recorded)
	notify(subscribers, r.name)
}

// withdraw removes a cluster from the view.
func (v *view) withdraw(name mcr.ClusterName) {
	v.mu.Lock()
	old, known := v.clusters[name]
	if known {
		v.inClass.Delete(old.Enrolment.Class, name)
	}
	delete(v.clusters, name)
	delete(v.refusals, name)
	subscribers := v.subscribers
	v.mu.Unlock()
	if known {
		notify(subscribers, name)
	}
}

func notify(subscribers []func(mcr.ClusterName), name mcr.ClusterName) {
	for _, fn := range subscribers {
		fn(name)
	}
}
