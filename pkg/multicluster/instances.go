// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
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

// InstancesOptions configure Instances. All of them but What and Queued are required.
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

// Instances are the engaged workload clusters of a controller, and its source. While a cluster's connection is being
// replaced (make-before-break), it has two instances: the last engaged one is active. Their methods are safe for
// concurrent use.
type Instances[R mcreconcile.ClusterAware[R], I Instance] struct {
	o InstancesOptions[R, I]

	mu        sync.Mutex
	byName    map[mcr.ClusterName]I
	byCluster map[cluster.Cluster]I
}

// NewInstances returns empty Instances.
func NewInstances[R mcreconcile.ClusterAware[R], I Instance](o InstancesOptions[R, I]) *Instances[R, I] {
	return &Instances[R, I]{o: o, byName: map[mcr.ClusterName]I{}, byCluster: map[cluster.Cluster]I{}}
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

// IfCurrent calls fn if an instance of a cluster is active: replaced or removed instances report nothing any more. fn
// is called with the lock held.
func (s *Instances[R, I]) IfCurrent(name mcr.ClusterName, i I, fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == i {
		fn()
	}
}

// Current reports whether an instance of a cluster is active.
func (s *Instances[R, I]) Current(name mcr.ClusterName, i I) bool {
	current := false
	s.IfCurrent(name, i, func() { current = true })
	return current
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

// ForCluster implements mcsource.TypedSource. It skips the hub.
func (s *Instances[R, I]) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (crsource.TypedSource[R], bool, error) {
	if name == hub {
		return nil, false, nil
	}
	return &instanceSource[R, I]{instances: s, name: name, cluster: cl}, true, nil
}

// Add makes an instance active. The source calls it on engagement; tests call it directly.
func (s *Instances[R, I]) Add(name mcr.ClusterName, cl cluster.Cluster, i I) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, replaced := s.byName[name]
	s.byName[name], s.byCluster[cl] = i, i
	s.o.Added(name, i, before, replaced)
}

// Remove drops an instance, which need not be active.
func (s *Instances[R, I]) Remove(name mcr.ClusterName, cl cluster.Cluster, i I) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byCluster[cl] == i {
		delete(s.byCluster, cl)
	}
	if s.byName[name] == i {
		delete(s.byName, name)
		s.o.Removed(name)
	}
}

// instanceSource creates an instance of a cluster, and runs it.
type instanceSource[R mcreconcile.ClusterAware[R], I Instance] struct {
	instances *Instances[R, I]
	name      mcr.ClusterName
	cluster   cluster.Cluster
}

// String returns the name of the source for logs.
func (s *instanceSource[R, I]) String() string { return s.instances.o.What }

// Start implements source.TypedSource. It does not block.
func (s *instanceSource[R, I]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
	i, err := s.instances.o.New(s.name, s.cluster, queue)
	if err != nil {
		return err
	}
	s.instances.Add(s.name, s.cluster, i)
	go func() {
		guarded := GetGuard(s.cluster)
		_ = guarded.Run("following a cluster", func() error { return i.Start(ctx) })
		_ = guarded.Do("forgetting a cluster", func() { s.instances.Remove(s.name, s.cluster, i) })
	}()
	if s.instances.o.Queued != nil {
		s.instances.o.Queued(i)
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource: a provider that replaces an instance of the cluster by this one can
// wait until this one has synced.
func (s *instanceSource[R, I]) WaitForSync(ctx context.Context) error {
	s.instances.mu.Lock()
	i, engaged := s.instances.byCluster[s.cluster]
	s.instances.mu.Unlock()
	if !engaged {
		return fmt.Errorf("cannot wait for cluster %q: it is not engaged", s.name)
	}
	return i.WaitForSync(ctx)
}
