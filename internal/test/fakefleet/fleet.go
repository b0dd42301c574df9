// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakefleet is a fleet for the tests of controllers: tests set what connection.Provider would know about
// clusters. The clusters themselves are real.
package fakefleet

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet has the clusters that are set. The zero value has none.
type Fleet struct {
	mu          sync.Mutex
	clusters    map[mcr.ClusterName]connection.Cluster
	subscribers []func(mcr.ClusterName)
	offboard    connection.OffboardFunc
}

// Lookup returns the cluster with a name.
func (f *Fleet) Lookup(name mcr.ClusterName) (connection.Cluster, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.clusters[name]
	return c, ok
}

// ByIdentifier returns the cluster with an identifier.
func (f *Fleet) ByIdentifier(id string) (connection.Cluster, bool) {
	for _, c := range f.List() {
		if c.EffectiveIdentifier() == id {
			return c, true
		}
	}
	return connection.Cluster{}, false
}

// List returns every cluster.
func (f *Fleet) List() []connection.Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.clusters))
}

// InClass returns the clusters of a class.
func (f *Fleet) InClass(class string) []mcr.ClusterName {
	var names []mcr.ClusterName
	for _, c := range f.List() {
		if c.Enrolment.Class == class {
			names = append(names, c.Name)
		}
	}
	return names
}

// Subscribe adds a function that is called with the name of each cluster that is set.
func (f *Fleet) Subscribe(fn func(mcr.ClusterName)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscribers = append(f.subscribers, fn)
}

// OnOffboard sets the function that Offboard calls.
func (f *Fleet) OnOffboard(fn connection.OffboardFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.offboard = fn
}

// Offboard calls the function that OnOffboard has set, for a cluster that leaves for good.
func (f *Fleet) Offboard(ctx context.Context, name mcr.ClusterName) error {
	f.mu.Lock()
	offboard := f.offboard
	f.mu.Unlock()
	return offboard(ctx, name)
}

// Set adds a cluster to the fleet, or changes what is known about it, and calls the subscribers.
func (f *Fleet) Set(c connection.Cluster) {
	f.mu.Lock()
	if f.clusters == nil {
		f.clusters = map[mcr.ClusterName]connection.Cluster{}
	}
	f.clusters[c.Name] = c
	subscribers := f.subscribers
	f.mu.Unlock()
	for _, fn := range subscribers {
		fn(c.Name)
	}
}

// Drain waits until no reconcile of a cluster runs, and prevents new ones, as the provider does before a cluster
// leaves.
func Drain(tb testing.TB, gate *multicluster.Gate, name mcr.ClusterName) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	gate.Close(name)
	if err := gate.WaitIdle(ctx, name); err != nil {
		tb.Fatal(err)
	}
}

// Forget removes a cluster, without calling the subscribers.
func (f *Fleet) Forget(name mcr.ClusterName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.clusters, name)
}
