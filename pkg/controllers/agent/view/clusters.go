// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Kinds of a workload cluster that are always watched: what Masthead itself put there, without content.
var (
	OwnedCRDKind = multicluster.OwnedDefinitions() //nolint:gochecknoglobals // A constant.

	OwnedSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		LabelSelector:    fleetv1alpha1.ManagedByLabel + "=" + ManagedByValue,
	}
)

// ControllerName is the name of the controller of claims, in metrics, logs and events.
const ControllerName = "agent"

// ManagedByValue is the value of the label masthead.dev/managed-by.
const ManagedByValue = fleetv1alpha1.FieldManager

// Clusters are the engaged workload clusters. It is the source of the requirement controller.
type Clusters struct {
	ClustersOptions

	mu       sync.Mutex
	byName   map[mcr.ClusterName]*Cluster
	instance map[cluster.Cluster]*Cluster
}

// ClustersOptions say what the engaged clusters need to know, and whom they tell.
type ClustersOptions struct {
	// Engaged is told that an instance is the one that counts from now on, and disengaged that a cluster has none any
	// more. Both are called with the lock held: what they note and forget, they do before another instance of the cluster
	// is known.
	Engaged    func(*Cluster)
	Disengaged func(mcr.ClusterName)

	// Queued has a cluster that was engaged looked at.
	Queued func(*Cluster)

	// Identify says which cluster a name leads to now.
	Identify func(mcr.ClusterName) Identity

	// Fleet knows whose the clusters are.
	Fleet Fleet

	// Handle is called for what happens in a cluster.
	Handle func(*Cluster, kindwatch.Event)
}

// NewClusters returns the engaged clusters, of which there are none yet.
func NewClusters(o ClustersOptions) *Clusters {
	return &Clusters{ClustersOptions: o, byName: map[mcr.ClusterName]*Cluster{}, instance: map[cluster.Cluster]*Cluster{}}
}

// ownerOf returns what says whose is what is in a cluster. A hub can take over from another one while it is connected.
func (s *Clusters) ownerOf(name mcr.ClusterName) func() hubidentity.Owner {
	return func() hubidentity.Owner {
		c, _ := s.Fleet.Lookup(name)
		return c.Hub
	}
}

// Get returns the instance of a cluster that was engaged last.
func (s *Clusters) Get(name mcr.ClusterName) (*Cluster, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.byName[name]
	return w, ok
}

// All returns the instance of each cluster that was engaged last.
func (s *Clusters) All() []*Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.byName))
}

// Current is whether an instance is the one that counts: a cluster that is being replaced, to make before breaking, has
// two for a while.
func (s *Clusters) Current(w *Cluster) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byName[w.Name] == w
}

// ifCurrent calls fn if an instance is the one that counts, with the lock held.
func (s *Clusters) ifCurrent(w *Cluster, fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[w.Name] == w {
		fn()
	}
}

// IfGone calls fn if a cluster has no instance, with the lock held, and says whether it did.
func (s *Clusters) IfGone(name mcr.ClusterName, fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, engaged := s.byName[name]; engaged {
		return false
	}
	fn()
	return true
}

// ForCluster implements mcsource.TypedSource.
func (s *Clusters) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (crsource.TypedSource[request.Request], bool, error) {
	if name == "" {
		return nil, false, nil
	}
	return &clusterSource{workloads: s, name: name, cluster: cl}, true, nil
}

// clusterSource watches the claims of one instance of a cluster.
type clusterSource struct {
	workloads *Clusters
	name      mcr.ClusterName
	cluster   cluster.Cluster
}

var _ crsource.TypedSyncingSource[request.Request] = &clusterSource{}

// String is the source in logs.
func (s *clusterSource) String() string { return "claims" }

// Start implements source.TypedSource. It does not block.
func (s *clusterSource) Start(ctx context.Context, _ workqueue.TypedRateLimitingInterface[request.Request]) error {
	w := NewCluster(Connection{
		Name:     s.name,
		Identity: s.workloads.Identify(s.name),
		Client:   s.cluster.GetClient(),
		Reader:   s.cluster.GetAPIReader(),
		Recorder: s.cluster.GetEventRecorder(ControllerName),
		Guard:    multicluster.GuardOf(s.cluster),
		Owner:    s.workloads.ownerOf(s.name),
	})
	watched, err := multicluster.WatchOptions(s.cluster)
	if err != nil {
		return fmt.Errorf("cannot make clients for cluster %q: %w", s.name, err)
	}
	watched.Handler, watched.KeepManager = func(e kindwatch.Event) { s.workloads.Handle(w, e) }, ownership.LateInitManager
	if w.Watcher, err = kindwatch.New(watched); err != nil {
		return fmt.Errorf("cannot watch cluster %q: %w", s.name, err)
	}
	w.Watcher.Set(OwnerFixed, OwnedCRDKind, OwnedSecretKind, NamespaceKind)
	s.workloads.Add(s.cluster, w)
	go func() {
		_ = w.Guard.Run("following a cluster", func() error { return w.Watcher.Start(ctx) })
		_ = w.Guard.Do("forgetting a cluster", func() { s.workloads.Remove(s.cluster, w) })
	}()
	s.workloads.Queued(w)
	return nil
}

// WaitForSync implements source.TypedSyncingSource: whoever replaces an instance of the cluster by this one can wait
// until this one knows what the other knew.
func (s *clusterSource) WaitForSync(ctx context.Context) error {
	s.workloads.mu.Lock()
	w := s.workloads.instance[s.cluster]
	s.workloads.mu.Unlock()
	if w == nil {
		return fmt.Errorf("cannot wait for cluster %q: it is not engaged", s.name)
	}
	return w.Watcher.WaitForSync(ctx)
}

// Add makes an instance the one that counts. If it leads to the same cluster as its predecessor, in another way, it
// starts with what that one knows. If it does not, or if that is not known, nothing is taken over: the predecessor is
// treated as gone although it may live for a while.
func (s *Clusters) Add(cl cluster.Cluster, w *Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch old := s.byName[w.Name]; {
	case old == nil:
	case old.Identity.same(w.Identity):
		w.takeOver(old)
	default:
		s.Disengaged(w.Name)
	}
	s.byName[w.Name] = w
	s.instance[cl] = w
	s.Engaged(w)
}

// Remove drops an instance.
func (s *Clusters) Remove(cl cluster.Cluster, w *Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance[cl] == w {
		delete(s.instance, cl)
	}
	if s.byName[w.Name] == w {
		delete(s.byName, w.Name)
		s.Disengaged(w.Name)
	}
}
