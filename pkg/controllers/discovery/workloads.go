// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crsource "sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// ownerMirror is the owner of all kinds in the watcher of a workload cluster.
const ownerMirror = "mirror"

// workload is one instance of an engaged workload cluster. It lives as long as its connection.
type workload struct {
	name     mcr.ClusterName
	client   dynamic.Interface
	metadata metadata.Interface
	watcher  *kindwatch.Watcher
	queue    workqueue.TypedRateLimitingInterface[mcreconcile.Request]

	mu sync.Mutex

	// user is as whom the cluster knows Masthead; empty if it has not been asked since that may have changed.
	user string

	// verified are the copies that Masthead wrote or found right, in the state that they had then.
	verified map[copyKey]verifiedCopy

	// bare are the kinds of which the cluster was seen to have nothing of Masthead's. They are not watched unless something
	// is wanted there.
	bare sets.Set[kindwatch.Kind]

	// followed are the kinds of copies that are watched, by the name of their definition. They stay as they are while it is
	// not known what the hub has.
	followed map[string]kindwatch.Kind
}

type copyKey struct {
	kind kindwatch.Kind
	name string
}

// verifiedCopy is what a copy was after it was written as a mirror says, which is right as long as it stays like that. It also ends what could be an endless correction: a webhook of the cluster that labels everything, or an API
// server that counts generations in another way.
type verifiedCopy struct {
	want       string
	uid        types.UID
	generation int64
	metadata   string
}

func verified(have *unstructured.Unstructured, m *mirror) verifiedCopy {
	return verifiedCopy{
		want: fmt.Sprintf("%s %q", m.hash, m.object.GetLabels()), uid: have.GetUID(), generation: have.GetGeneration(),
		metadata: fmt.Sprintf("%q %q", have.GetLabels(), have.GetAnnotations()[fleetv1alpha1.MirroredAnnotation]),
	}
}

// enqueue has the cluster looked at. It does not block.
func (w *workload) enqueue() { w.queue.Add(mcreconcile.Request{ClusterName: w.name}) }

// handle is the handler of the cluster's watcher.
func (w *workload) handle(e kindwatch.Event) {
	if e.Initial {
		return
	}
	if e.Kind.GroupVersionKind == crdGVK && e.Object != nil {
		for _, k := range mirroredKinds() {
			if k.crd() == e.Object.GetName() {
				w.watcher.Poke(k.groupResource())
			}
		}
	}
	w.enqueue()
}

func (w *workload) knownUser() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.user
}

func (w *workload) setUser(user string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.user = user
}

func (w *workload) isVerified(key copyKey, v verifiedCopy) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verified[key] == v
}

func (w *workload) setVerified(key copyKey, v verifiedCopy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.verified[key] = v
}

// forgetCopies forgets what was verified of a kind, or of one copy of it.
func (w *workload) forgetCopies(kind kindwatch.Kind, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.verified, func(key copyKey, _ verifiedCopy) bool {
		return key.kind == kind && (len(names) == 0 || slices.Contains(names, key.name))
	})
}

func (w *workload) isBare(kind kindwatch.Kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bare.Has(kind)
}

func (w *workload) setBare(kind kindwatch.Kind, bare bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if bare {
		w.bare.Insert(kind)
	} else {
		w.bare.Delete(kind)
	}
}

// workloads are the engaged workload clusters. It is the source of the controller.
type workloads struct {
	// engaged and disengaged are called when an instance of a cluster comes, and when its last one goes, with mu held.
	engaged    func(mcr.ClusterName)
	disengaged func(mcr.ClusterName)

	mu       sync.Mutex
	byName   map[mcr.ClusterName]*workload
	instance map[cluster.Cluster]*workload
}

func newWorkloads(engaged, disengaged func(mcr.ClusterName)) *workloads {
	return &workloads{
		engaged:    engaged,
		disengaged: disengaged,
		byName:     map[mcr.ClusterName]*workload{},
		instance:   map[cluster.Cluster]*workload{},
	}
}

// get returns the instance of a cluster that was engaged last.
func (s *workloads) get(name mcr.ClusterName) (*workload, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, ok := s.byName[name]
	return w, ok
}

// enqueueAll has every cluster looked at.
func (s *workloads) enqueueAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.byName))
	s.mu.Unlock()
	for _, w := range all {
		w.enqueue()
	}
}

// ForCluster implements mcsource.TypedSource.
func (s *workloads) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (crsource.TypedSource[mcreconcile.Request], bool, error) {
	if name == "" {
		return nil, false, nil
	}
	return &workloadSource{workloads: s, name: name, cluster: cl}, true, nil
}

// workloadSource watches what Masthead put into one instance of a cluster.
type workloadSource struct {
	workloads *workloads
	name      mcr.ClusterName
	cluster   cluster.Cluster
}

var _ crsource.TypedSyncingSource[mcreconcile.Request] = &workloadSource{}

// String is the source in logs.
func (s *workloadSource) String() string { return "mirrored objects" }

// Start implements source.TypedSource. It does not block.
func (s *workloadSource) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) error {
	dyn, meta, err := multicluster.WatchClients(s.cluster)
	if err != nil {
		return fmt.Errorf("cannot make clients for cluster %q: %w", s.name, err)
	}
	w := &workload{
		name: s.name, client: dyn, metadata: meta, queue: queue,
		verified: map[copyKey]verifiedCopy{}, bare: sets.New[kindwatch.Kind](),
		followed: map[string]kindwatch.Kind{},
	}
	w.watcher, err = kindwatch.New(kindwatch.Options{Client: dyn, MetadataClient: meta, Handler: w.handle})
	if err != nil {
		return fmt.Errorf("cannot watch cluster %q: %w", s.name, err)
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

// add makes an instance the one that counts: a cluster that is being replaced, to make before breaking, has two for a while.
func (s *workloads) add(cl cluster.Cluster, w *workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[w.name] = w
	s.instance[cl] = w
	s.engaged(w.name)
}

func (s *workloads) remove(cl cluster.Cluster, w *workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.instance[cl] == w {
		delete(s.instance, cl)
	}
	if s.byName[w.name] == w {
		delete(s.byName, w.name)
		s.disengaged(w.name)
	}
}

// follow has the copies of a kind watched, or not.
func (w *workload) follow(crd string, kind kindwatch.Kind, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wanted {
		w.followed[crd] = kind
	} else {
		delete(w.followed, crd)
	}
}

func (w *workload) followedKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.followed))
}
