// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// servedTimeout is how long to wait for the objects of a kind whose definition the cluster has. An API server takes
// five seconds at most to serve a definition that it accepts.
const servedTimeout = 15 * time.Second

// ownerMirror owns all kinds in a workload cluster's watcher.
const ownerMirror = "mirror"

// workload is one instance of an engaged workload cluster. It lives as long as its connection.
type workload struct {
	name     mcr.ClusterName
	client   dynamic.Interface
	metadata metadata.Interface
	watcher  *kindwatch.Watcher
	queue    workqueue.TypedRateLimitingInterface[mcreconcile.Request]

	// user is our username there.
	user *install.PolicyUser

	// verified are the copies that Masthead wrote or found up to date.
	verified install.Latest[copyKey, install.State]

	// awaited is the time since which the objects of a kind have been pending.
	awaited install.Latest[kindwatch.Kind, time.Time]

	mu sync.Mutex

	// unmanaged are the kinds of which the cluster was observed to have nothing of Masthead's. They are watched only if
	// something is wanted there. The definition of a kind counts as one, see crdKind.
	unmanaged sets.Set[kindwatch.Kind]

	// followed are the watched kinds of copies, by the name of their definition. They are kept while the hub's state is
	// unknown.
	followed map[string]kindwatch.Kind
}

type copyKey struct {
	kind kindwatch.Kind
	name string
}

// verified is the state of a copy that was written from a mirror or found equal to it.
func verified(have *unstructured.Unstructured, m *mirror) install.State {
	return install.CompareState(have, fmt.Sprintf("%s %q", m.hash, m.object.GetLabels()),
		fmt.Sprintf("%q %q", have.GetLabels(), have.GetAnnotations()[fleetv1alpha1.MirroredAnnotation]))
}

// enqueue requeues the cluster. It does not block.
func (w *workload) enqueue() { w.queue.Add(mcreconcile.Request{ClusterName: w.name}) }

// settling is how long events of a cluster's objects are batched. A pass reads all objects of the kinds: without
// batching, a cluster that changes them constantly would be reconciled constantly.
const settling = 500 * time.Millisecond

// handle is the handler of the cluster's watcher.
func (w *workload) handle(e kindwatch.Event) {
	if e.Initial {
		return
	}
	if e.Kind.GroupVersionKind == crossplane.CRDGVK && e.Object != nil {
		i := slices.IndexFunc(mirroredKinds(), func(k mirroredKind) bool { return k.crd() == e.Object.GetName() })
		if i < 0 {
			// It is the definition of a claim kind, or of Applications.
			return
		}
		w.watcher.Retry(mirroredKinds()[i].groupResource())
	}
	if e.Object != nil {
		w.queue.AddAfter(mcreconcile.Request{ClusterName: w.name}, settling)
		return
	}
	w.enqueue()
}

// forgetCopies drops the verified state of a kind, or of some of its copies.
func (w *workload) forgetCopies(kind kindwatch.Kind, names ...string) {
	w.verified.Forget(func(key copyKey) bool {
		return key.kind == kind && (len(names) == 0 || slices.Contains(names, key.name))
	})
}

func (w *workload) isUnmanaged(kind kindwatch.Kind) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unmanaged.Has(kind)
}

func (w *workload) setUnmanaged(kind kindwatch.Kind, unmanaged bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if unmanaged {
		w.unmanaged.Insert(kind)
	} else {
		w.unmanaged.Delete(kind)
	}
}

// awaits returns the remaining wait for the objects of a kind.
func (w *workload) awaits(kind kindwatch.Kind, now time.Time) time.Duration {
	return max(0, servedTimeout-now.Sub(w.awaited.First(kind, now)))
}

// workloads are the engaged workload clusters.
type workloads = multicluster.Instances[mcreconcile.Request, *workload]

func newWorkloads(r *reports, users *install.PolicyUsers, now func() time.Time) *workloads {
	return multicluster.NewInstances(multicluster.InstancesOptions[mcreconcile.Request, *workload]{
		What: "mirrored objects",
		New: func(name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request]) (*workload, error) {
			return newWorkload(name, cl, queue, users.Renew(name, now()))
		},
		Removed: func(name mcr.ClusterName) {
			r.forgetCluster(name)
			users.Forget(name)
		},
		Queued: (*workload).enqueue,
	})
}

// newWorkload creates the state of one cluster instance.
func newWorkload(
	name mcr.ClusterName, cl cluster.Cluster, queue workqueue.TypedRateLimitingInterface[mcreconcile.Request], user *install.PolicyUser,
) (*workload, error) {
	watched, err := multicluster.WatchOptions(cl)
	if err != nil {
		return nil, fmt.Errorf("cannot create clients for cluster %q: %w", name, err)
	}
	w := &workload{
		name: name, client: watched.Client, metadata: watched.MetadataClient, queue: queue, user: user,
		unmanaged: sets.New[kindwatch.Kind](),
		followed:  map[string]kindwatch.Kind{},
	}
	watched.Handler = w.handle
	if w.watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch cluster %q: %w", name, err)
	}
	return w, nil
}

// Start implements multicluster.Instance.
func (w *workload) Start(ctx context.Context) error { return w.watcher.Start(ctx) }

// WaitForSync implements multicluster.Instance.
func (w *workload) WaitForSync(ctx context.Context) error { return w.watcher.WaitForSync(ctx) }

// follow starts or stops watching the copies of a kind.
func (w *workload) follow(crd string, kind kindwatch.Kind, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wanted {
		w.followed[crd] = kind
	} else {
		w.awaited.Set(w.followed[crd], time.Time{})
		delete(w.followed, crd)
	}
}

// see returns an object of a kind from the watch's cache, and which watch that is. A definition without our label has
// its own watch while it is wanted: it may not exist, or be foreign.
func (w *workload) see(kind kindwatch.Kind, name string) (*unstructured.Unstructured, kindwatch.Kind, error) {
	key := types.NamespacedName{Name: name}
	have, err := w.watcher.Get(kind, key)
	if kind == ownedDefinitionKind && apierrors.IsNotFound(err) {
		kind = crdKind(name, true)
		have, err = w.watcher.Get(kind, key)
	}
	return have, kind, err
}

// isUnknown reports whether the watch does not know whether an object exists.
func isUnknown(err error) bool {
	return errors.Is(err, kindwatch.ErrNotSynced) || errors.Is(err, kindwatch.ErrNotWatched)
}

func (w *workload) followedKinds() []kindwatch.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.followed))
}
