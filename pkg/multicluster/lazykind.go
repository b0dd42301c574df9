// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mchandler "sigs.k8s.io/multicluster-runtime/pkg/handler"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"
)

const (
	// defaultSlowRetry is how long, at most, a parked source waits until it looks again by itself. It is for clusters
	// whose definitions may not be watched; all others wake it.
	defaultSlowRetry = 2 * time.Minute

	// defaultQuickRetry is how long a source waits at first. The server announces a definition before it serves the kind,
	// and says that it serves it before its discovery does.
	defaultQuickRetry = 100 * time.Millisecond

	// probeTimeout bounds the request that finds out whether a kind is served.
	probeTimeout = 10 * time.Second
)

// MissingKinds is told which of the watched kinds a cluster lacks. It is called from the goroutine of each source that
// watches the kind, so that it must not block, and hears the same more than once.
type MissingKinds interface {
	// KindMissing says that a watch is parked, since the cluster does not serve the kind.
	KindMissing(cluster mcr.ClusterName, kind schema.GroupKind)
	// KindServed says that the kind is watched.
	KindServed(cluster mcr.ClusterName, kind schema.GroupKind)
}

// LazyOption configures a LazyKind.
type LazyOption func(*lazyOptions)

type lazyOptions struct {
	missing    MissingKinds
	predicates []predicate.Predicate
	clock      clock.WithTicker
	quickRetry time.Duration
	slowRetry  time.Duration
}

// WithMissingKinds reports the kinds that clusters lack.
func WithMissingKinds(reporter MissingKinds) LazyOption {
	return func(o *lazyOptions) { o.missing = reporter }
}

// WithPredicates drops the events that one of the predicates rejects.
func WithPredicates(predicates ...predicate.Predicate) LazyOption {
	return func(o *lazyOptions) { o.predicates = append(o.predicates, predicates...) }
}

// WithRetry sets how long a source waits at first before it looks again whether its kind is served, and at last.
func WithRetry(quick, slow time.Duration) LazyOption {
	return func(o *lazyOptions) { o.quickRetry, o.slowRetry = quick, slow }
}

// WithClock sets the clock, which is the real one by default.
func WithClock(c clock.WithTicker) LazyOption {
	return func(o *lazyOptions) { o.clock = c }
}

// LazyKind returns a source that watches a kind in every cluster, whether or not the cluster serves it or can be reached.
// The object says the kind: typed, *unstructured.Unstructured or *metav1.PartialObjectMetadata. A cluster for which the
// function returns no handler is not watched.
//
// It replaces multicluster-runtime v0.24.1's source.Kind:
//
//   - That one's Start waits for the informer to sync with no limit of time (kubernetes-sigs/multicluster-runtime has no
//     issue for it; redpanda-data/redpanda-operator#1440 met it). Here Start returns at once, and never fails.
//   - That one fails if the cluster lacks the kind, and with it the engagement of the cluster for every controller, whereas
//     controller-runtime's own Kind polls. Here the source parks, tells MissingKinds, and is woken by a metadata-only
//     watch on the cluster's CustomResourceDefinitions (one informer per cluster, in the cluster's cache, shared by all
//     sources) and by a slow retry with jitter. When the definition is deleted, every object that was there is announced as
//     deleted, the informer is removed from the cache, and the source parks again.
//   - That one never says that an object comes from the initial list, and mchandler's queue does not let priorities
//     through. Here what comes from the initial list, and from resyncs, has handler.LowPriority, whatever the handler is.
//
// Removing the informer ends it for everybody who shares the cluster's cache: other LazyKinds of the kind notice and start
// again, other sources would not. Reads through the cache fail with ErrResourceNotCached until the kind is back, if the cache
// has ReaderFailOnMissingInformer; field indexes on the kind are lost, so that a kind that may come and go should not be
// read by index.
//
// The cluster's credentials should be allowed to list and watch CustomResourceDefinitions. If they are not, a kind that comes
// or goes is noticed by the slow retry only, and the cache as a whole never counts as synced.
//
// The cluster's cache should make its informers with NewInformer, or each end of an engagement leaves goroutines behind.
//
// A goroutine per cluster and kind lives as long as the engagement. While it waits for a cluster that does not answer, it
// ends only with the HTTP request of the cluster's RESTMapper, which no context reaches: the cluster's HTTP client needs
// time limits on connecting and on response headers.
func LazyKind[R mcreconcile.ClusterAware[R]](
	obj client.Object, h mchandler.TypedEventHandlerFunc[client.Object, R], opts ...LazyOption,
) mcsource.TypedSource[client.Object, R] {
	o := lazyOptions{clock: clock.RealClock{}, quickRetry: defaultQuickRetry, slowRetry: defaultSlowRetry}
	for _, f := range opts {
		f(&o)
	}
	return &lazyKind[R]{obj: obj, handler: h, options: o}
}

type lazyKind[R mcreconcile.ClusterAware[R]] struct {
	obj     client.Object
	handler mchandler.TypedEventHandlerFunc[client.Object, R]
	options lazyOptions
}

// ForCluster implements mcsource.TypedSource. It fails only for what would fail in every cluster.
func (k *lazyKind[R]) ForCluster(name mcr.ClusterName, cl cluster.Cluster) (source.TypedSource[R], bool, error) {
	gvk, err := apiutil.GVKForObject(k.obj, cl.GetScheme())
	if err != nil {
		return nil, false, fmt.Errorf("cannot tell the kind of %T: %w", k.obj, err)
	}
	return &lazySource[R]{
		options:     k.options,
		name:        name,
		cluster:     cl,
		gvk:         gvk,
		obj:         k.obj.DeepCopyObject().(client.Object),
		makeHandler: k.handler,
		synced:      make(chan struct{}),
	}, true, nil
}

var _ source.TypedSyncingSource[mcreconcile.Request] = &lazySource[mcreconcile.Request]{}

// lazySource watches one kind in one cluster.
type lazySource[R mcreconcile.ClusterAware[R]] struct {
	options lazyOptions
	name    mcr.ClusterName
	cluster cluster.Cluster
	gvk     schema.GroupVersionKind
	obj     client.Object
	// makeHandler makes the handler, perhaps with the help of the cluster's RESTMapper, so that it must not be called with a lock
	// held.
	makeHandler mchandler.TypedEventHandlerFunc[client.Object, R]
	handler     handler.TypedEventHandler[client.Object, R]

	once   sync.Once
	synced chan struct{}
}

// Start implements source.TypedSource.
func (s *lazySource[R]) Start(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
	go s.run(ctx, q)
	return nil
}

// WaitForSync implements source.TypedSyncingSource. A kind that is not served is in sync: there is nothing to wait for.
func (s *lazySource[R]) WaitForSync(ctx context.Context) error {
	select {
	case <-s.synced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// String says in logs what is watched where.
func (s *lazySource[R]) String() string {
	return fmt.Sprintf("kind %s of cluster %s", s.gvk, displayName(s.name))
}

func (s *lazySource[R]) markSynced() { s.once.Do(func() { close(s.synced) }) }

// report tells the reporter, if there is one, unless the engagement is over: another instance of the cluster may be
// there already, and knows better.
func (s *lazySource[R]) report(ctx context.Context, served bool) {
	if s.options.missing == nil || ctx.Err() != nil {
		return
	}
	if served {
		s.options.missing.KindServed(s.name, s.gvk.GroupKind())
		return
	}
	s.options.missing.KindMissing(s.name, s.gvk.GroupKind())
}
