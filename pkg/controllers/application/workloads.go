// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// linger is how long a kind is still watched that no Application names any more.
const linger = time.Minute

// workloads are the engaged workload clusters. It is the source of the controller.
type workloads struct {
	r *reconciler

	mu       sync.Mutex
	byName   map[mcr.ClusterName]*workload
	instance map[cluster.Cluster]*workload
}

func newWorkloads(r *reconciler) *workloads {
	return &workloads{r: r, byName: map[mcr.ClusterName]*workload{}, instance: map[cluster.Cluster]*workload{}}
}

// get returns the instance of a cluster that was engaged last.
func (s *workloads) get(name mcr.ClusterName) (*workload, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.byName[name]
	return w, ok
}

func (s *workloads) all() []*workload {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*workload, 0, len(s.byName))
	for _, w := range s.byName {
		out = append(out, w)
	}
	return out
}

// ifCurrent calls fn if an instance is the one that counts: a cluster that is being replaced, to make before breaking, has two for a
// while, and of one that has gone nothing is told any more. fn is called with mu held.
func (s *workloads) ifCurrent(w *workload, fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[w.name] == w {
		fn()
	}
}

// ForCluster implements mcsource.TypedSource.
func (s *workloads) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (crsource.TypedSource[mcreconcile.Request], bool, error) {
	if name == "" {
		return nil, false, nil
	}
	return &workloadSource{workloads: s, name: name, cluster: cl}, true, nil
}

// workloadSource watches the Applications and their components in one instance of a cluster.
type workloadSource struct {
	workloads *workloads
	name      mcr.ClusterName
	cluster   cluster.Cluster
}

var _ crsource.TypedSyncingSource[mcreconcile.Request] = &workloadSource{}

// String is the source in logs.
func (s *workloadSource) String() string { return "Applications" }

// Start implements source.TypedSource. It does not block.
func (s *workloadSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	w, err := s.workloads.r.newWorkload(s.name, s.cluster, queue)
	if err != nil {
		return err
	}
	s.workloads.add(s.cluster, w)
	go func() {
		_ = w.watcher.Start(ctx)
		s.workloads.remove(s.cluster, w)
	}()
	w.enqueue()
	return nil
}

// WaitForSync implements source.TypedSyncingSource.
func (s *workloadSource) WaitForSync(ctx context.Context) error {
	s.workloads.mu.Lock()
	w := s.workloads.instance[s.cluster]
	s.workloads.mu.Unlock()
	if w == nil {
		return fmt.Errorf("cannot wait for cluster %q: it is not engaged", s.name)
	}
	return w.watcher.WaitForSync(ctx)
}

// newWorkload makes what there is to know about an instance of a cluster.
func (r *reconciler) newWorkload(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request],
) (*workload, error) {
	dyn, meta, err := multicluster.WatchClients(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot make clients for cluster %q: %w", name, err)
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(cl.GetConfig(), cl.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for cluster %q: %w", name, err)
	}
	w := &workload{
		name: name, client: dyn, metadata: meta, queue: queue, clock: r.clock, requestTimeout: r.requestTimeout,
		resolver:        kindwatch.NewResolver(kindwatch.ResolverOptions{Client: served, Clock: r.clock}),
		applications:    map[applicationKey]*tracked{},
		byUID:           map[types.UID]applicationKey{},
		dependents:      map[applicationKey]sets.Set[applicationKey]{},
		users:           map[kindwatch.Kind]sets.Set[applicationKey]{},
		unansweredUntil: map[schema.GroupVersion]time.Time{},
		refusals:        map[refusalKey]refusal{},
		healthChecks:    newHealthChecks(r.clock),
	}
	w.watcher, err = kindwatch.New(kindwatch.Options{
		Client: dyn, MetadataClient: meta, Clock: r.clock, Lists: r.lists, Linger: linger,
		Handler: func(e kindwatch.Event) { r.handle(w, e) },
		Reduce:  reducer{r.assessor, &w.texts, r.packer}.reduce,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	return w, nil
}

// add makes an instance the one that counts.
func (s *workloads) add(cl cluster.Cluster, w *workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.byName[w.name]; old != nil {
		// What the new one does not find is forgotten when it has read all Applications.
		w.told = old.uids()
	}
	s.byName[w.name] = w
	s.instance[cl] = w
}

func (s *workloads) remove(cl cluster.Cluster, w *workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance[cl] == w {
		delete(s.instance, cl)
	}
	if s.byName[w.name] == w {
		delete(s.byName, w.name)
		s.r.disengaged(w.name)
	}
}
