// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// An Instance is a controller's state of one connection to a workload cluster, and watches that cluster.
type Instance interface {
	comparable

	// Start watches the cluster until ctx ends.
	Start(ctx context.Context) error

	// WaitForSync waits until the content of the cluster is cached.
	WaitForSync(ctx context.Context) error
}

// InstancesOptions configure Instances. All of them but What, Added and Queued are required.
type InstancesOptions[R mcreconcile.ClusterAware[R], I Instance] struct {
	// What describes the watched objects, for logs.
	What string

	// New creates an instance of a cluster. The queue is that of the controller.
	New func(name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[R]) (I, error)

	// Added is called when an instance becomes active, with the one it replaces, if any. Removed is called when a cluster
	// has no instance any more. Both are called with the lock of the Instances held, so that what they record is
	// consistent with reads.
	Added   func(name mcr.ClusterName, added, before I, replaced bool)
	Removed func(name mcr.ClusterName)

	// Queued enqueues the first requests of the cluster.
	Queued func(I)
}

// Instances are the engaged workload clusters of a controller. While a cluster's connection is being
// replaced (make-before-break), it has two instances: the last engaged one is active. Their methods are safe for
// concurrent use.
type Instances[R mcreconcile.ClusterAware[R], I Instance] struct {
	o InstancesOptions[R, I]

	mu        sync.Mutex
	byName    map[mcr.ClusterName]I
	byCluster map[cluster.Cluster]*engagement[I]

	// started is closed when the controller has set ctx and queue.
	started chan struct{}
	ctx     context.Context //nolint:containedctx // It is the parent of what each engagement runs.
	queue   workqueue.TypedRateLimitingInterface[R]
}

// NewInstances returns empty Instances.
func NewInstances[R mcreconcile.ClusterAware[R], I Instance](o InstancesOptions[R, I]) *Instances[R, I] {
	return &Instances[R, I]{
		o: o, byName: map[mcr.ClusterName]I{}, byCluster: map[cluster.Cluster]*engagement[I]{}, started: make(chan struct{}),
	}
}

// Get returns the active instance of a cluster.
func (s *Instances[R, I]) Get(name mcr.ClusterName) (I, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[name]
	return i, ok
}

// All returns the active instance of each cluster.
func (s *Instances[R, I]) All() []I {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byName))
}

// IfCurrent calls fn with the lock held if an instance of a cluster is active, and reports whether it did: replaced or
// removed instances report nothing any more.
func (s *Instances[R, I]) IfCurrent(name mcr.ClusterName, i I, fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] != i {
		return false
	}
	fn()
	return true
}

// Current reports whether an instance of a cluster is active.
func (s *Instances[R, I]) Current(name mcr.ClusterName, i I) bool {
	return s.IfCurrent(name, i, func() {})
}

// IfGone calls fn with the lock held if a cluster has no instance, and reports whether it did.
func (s *Instances[R, I]) IfGone(name mcr.ClusterName, fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, engaged := s.byName[name]; engaged {
		return false
	}
	fn()
	return true
}

// Add makes an instance active, unless ctx has ended, and reports whether it did. It is called on engagement; tests
// call it directly.
func (s *Instances[R, I]) Add(ctx context.Context, name mcr.ClusterName, i I) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	before, replaced := s.byName[name]
	s.byName[name] = i
	if s.o.Added != nil {
		s.o.Added(name, i, before, replaced)
	}
	return true
}

// Remove drops an instance, which need not be active.
func (s *Instances[R, I]) Remove(name mcr.ClusterName, i I) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == i {
		delete(s.byName, name)
		s.o.Removed(name)
	}
}
