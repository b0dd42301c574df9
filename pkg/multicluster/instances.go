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

// An Instance is what a controller knows of one connection to a workload cluster, and what follows it.
type Instance interface {
	comparable

	// Start follows the cluster until ctx ends.
	Start(ctx context.Context) error

	// WaitForSync waits until what there is in the cluster is known.
	WaitForSync(ctx context.Context) error
}

// InstancesOptions configure Instances. All of them but What and Queued are required.
type InstancesOptions[R mcreconcile.ClusterAware[R], I Instance] struct {
	// What is watched, for logs.
	What string

	// New makes an instance of a cluster. The queue is that of the controller.
	New func(name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[R]) (I, error)

	// Added is told that an instance is the one that counts from now on, and which one did until now, if there was one.
	// Removed is told that a cluster has no instance any more. Both are called with the lock of the Instances held: what
	// they note is true when somebody else asks.
	Added   func(name mcr.ClusterName, added, before I, replaced bool)
	Removed func(name mcr.ClusterName)

	// Queued has the cluster looked at for the first time.
	Queued func(I)
}

// Instances are the engaged workload clusters of a controller, whose source they are. A cluster that is being replaced,
// to make before breaking, has two instances for a while: the one that was engaged last counts. Their methods may be
// called from everywhere.
type Instances[R mcreconcile.ClusterAware[R], I Instance] struct {
	o InstancesOptions[R, I]

	mu        sync.Mutex
	byName    map[mcr.ClusterName]I
	byCluster map[cluster.Cluster]I
}

// NewInstances returns Instances of which there is none yet.
func NewInstances[R mcreconcile.ClusterAware[R], I Instance](o InstancesOptions[R, I]) *Instances[R, I] {
	return &Instances[R, I]{o: o, byName: map[mcr.ClusterName]I{}, byCluster: map[cluster.Cluster]I{}}
}

// Get returns the instance of a cluster that counts.
func (s *Instances[R, I]) Get(name mcr.ClusterName) (I, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.byName[name]
	return i, ok
}

// All returns the instance of each cluster that counts.
func (s *Instances[R, I]) All() []I {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byName))
}

// IfCurrent calls fn if an instance of a cluster is the one that counts: of one that has been replaced, or has gone,
// nothing is told any more. fn is called with the lock held.
func (s *Instances[R, I]) IfCurrent(name mcr.ClusterName, i I, fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[name] == i {
		fn()
	}
}

// Current is whether an instance of a cluster is the one that counts.
func (s *Instances[R, I]) Current(name mcr.ClusterName, i I) bool {
	current := false
	s.IfCurrent(name, i, func() { current = true })
	return current
}

// IfGone calls fn if a cluster has no instance, with the lock held, and says whether it did.
func (s *Instances[R, I]) IfGone(name mcr.ClusterName, fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, engaged := s.byName[name]; engaged {
		return false
	}
	fn()
	return true
}

// ForCluster implements mcsource.TypedSource. The hub is no workload cluster.
func (s *Instances[R, I]) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (crsource.TypedSource[R], bool, error) {
	if name == hub {
		return nil, false, nil
	}
	return &instanceSource[R, I]{instances: s, name: name, cluster: cl}, true, nil
}

// Add makes an instance the one that counts. Whoever engages a cluster does so; tests play that.
func (s *Instances[R, I]) Add(name mcr.ClusterName, cl cluster.Cluster, i I) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, replaced := s.byName[name]
	s.byName[name], s.byCluster[cl] = i, i
	s.o.Added(name, i, before, replaced)
}

// Remove drops an instance, which need not be the one that counts.
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

// instanceSource makes an instance of a cluster, and follows it.
type instanceSource[R mcreconcile.ClusterAware[R], I Instance] struct {
	instances *Instances[R, I]
	name      mcr.ClusterName
	cluster   cluster.Cluster
}

// String is the source in logs.
func (s *instanceSource[R, I]) String() string { return s.instances.o.What }

// Start implements source.TypedSource. It does not block.
func (s *instanceSource[R, I]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
	i, err := s.instances.o.New(s.name, s.cluster, queue)
	if err != nil {
		return err
	}
	s.instances.Add(s.name, s.cluster, i)
	go func() {
		guarded := GuardOf(s.cluster)
		_ = guarded.Run("following a cluster", func() error { return i.Start(ctx) })
		_ = guarded.Do("forgetting a cluster", func() { s.instances.Remove(s.name, s.cluster, i) })
	}()
	if s.instances.o.Queued != nil {
		s.instances.o.Queued(i)
	}
	return nil
}

// WaitForSync implements source.TypedSyncingSource: whoever replaces an instance of the cluster by this one can wait
// until this one knows what the other knew.
func (s *instanceSource[R, I]) WaitForSync(ctx context.Context) error {
	s.instances.mu.Lock()
	i, engaged := s.instances.byCluster[s.cluster]
	s.instances.mu.Unlock()
	if !engaged {
		return fmt.Errorf("cannot wait for cluster %q: it is not engaged", s.name)
	}
	return i.WaitForSync(ctx)
}
