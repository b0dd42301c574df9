// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

const (
	// controllerName is the name in logs and metrics.
	controllerName = "clusterimport"

	// reconcileTimeout bounds one reconciliation.
	reconcileTimeout = 2 * time.Minute

	// DefaultMaxConcurrentReconciles is how many imports are reconciled at once.
	DefaultMaxConcurrentReconciles = 8
)

// Options of the importer.
type Options struct {
	// Credentials is the policy for kubeconfigs.
	Credentials credentials.Options

	// AllowedTokenEndpoints are the only URLs to request tokens from. One that ends in "/" allows every path below it.
	AllowedTokenEndpoints []string

	// AllowedServers are the only URLs that an import may name as the address of its API server, alike.
	AllowedServers []string

	// TokenAuthorities are the CAs, as PEM, of the token endpoints. Empty means those of the system.
	TokenAuthorities []byte

	// MaxConcurrentReconciles is how many imports are reconciled at once. 0 means DefaultMaxConcurrentReconciles.
	MaxConcurrentReconciles int

	// Registerer of the metrics; nil means none.
	Registerer prometheus.Registerer

	// Verify checks whether the hub enforces the admission policies. Nil means takeover.Verify.
	Verify func(ctx context.Context, namespace string) error

	// Budget is the memory that imports share with connected clusters; nil means no limit.
	Budget *limits.Budget

	// Clock; nil means the real one.
	Clock clock.Clock

	// SkipNameValidation allows several importers in one process, for tests.
	SkipNameValidation *bool
}

func (o *Options) setDefaults(mgr manager.Manager) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.Verify == nil {
		o.Verify = func(ctx context.Context, namespace string) error {
			return takeover.Verify(ctx, liveHub{mgr}, namespace)
		}
	}
}

// SetupWithManager adds the importer to the hub's manager.
func SetupWithManager(mgr manager.Manager, o Options) error {
	o.setDefaults(mgr)
	owned, err := newOwned(mgr)
	if err != nil {
		return err
	}
	minted, err := token.New(o.AllowedTokenEndpoints, o.TokenAuthorities, o.Clock)
	if err != nil {
		return err
	}
	servers, err := token.ParseAllowed(o.AllowedServers)
	if err != nil {
		return fmt.Errorf("cannot read the servers that imports may name: %w", err)
	}
	minted.Register(o.Registerer)
	ofHub := &hubObjects{hub: mgr.GetClient(), live: mgr.GetAPIReader(), owned: owned}
	r := &Reconciler{
		hubObjects: ofHub, mapper: mgr.GetRESTMapper(), recorder: mgr.GetEventRecorder(fleetv1alpha1.FieldManager), clock: o.Clock, verify: o.Verify,
		kinds: newKinds(o.Clock), states: newStates(),
		kubeconfigs: &kubeconfigs{
			hubObjects: ofHub, clock: o.Clock, creds: o.Credentials, servers: servers,
			tokens: minted, accounts: minted.OfAccounts(), clusters: workload.NewClusters(o.Clock, o.Budget),
		},
	}
	r.states.register(o.Registerer)
	c, err := controller.NewTyped(controllerName, mgr, controller.TypedOptions[reconcile.Request]{
		Reconciler: r, MaxConcurrentReconciles: o.MaxConcurrentReconciles, SkipNameValidation: o.SkipNameValidation,
		ReconciliationTimeout: reconcileTimeout,
	})
	if err != nil {
		return fmt.Errorf("cannot create the controller of ClusterImports: %w", err)
	}
	woken := &multicluster.EventQueue[reconcile.Request]{}
	r.kubeconfigs.places = newPlaces(o.MaxConcurrentReconciles, func(key types.NamespacedName) {
		woken.Add(reconcile.Request{NamespacedName: key})
	})
	if err := c.Watch(woken); err != nil {
		return fmt.Errorf("cannot watch for woken ClusterImports: %w", err)
	}
	imports := source.TypedKind(mgr.GetCache(), &fleetv1alpha1.ClusterImport{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, i *fleetv1alpha1.ClusterImport) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(i)}}
		}))
	if err := c.Watch(imports); err != nil {
		return fmt.Errorf("cannot watch ClusterImports: %w", err)
	}
	of := &watches{controller: c, cache: owned, toImports: importOfLabels, on: map[schema.GroupKind]schema.GroupVersionKind{}}
	r.watch, r.watched = of.ensure, of.kinds
	if err := c.Watch(source.TypedFunc[reconcile.Request](r.startLeftovers)); err != nil {
		return fmt.Errorf("cannot look for objects that imports have left: %w", err)
	}
	return r.setupMembers(mgr, c)
}

// setupMembers maps changes of objects that name a cluster to the import of that cluster.
func (r *Reconciler) setupMembers(mgr manager.Manager, c controller.TypedController[reconcile.Request]) error {
	members, err := newMembers(mgr)
	if err != nil {
		return err
	}
	of := &watches{controller: c, cache: members, toImports: r.importOfMember, on: map[schema.GroupKind]schema.GroupVersionKind{}}
	of.before = func(ctx context.Context, object client.Object) error {
		return members.IndexField(ctx, object, clusterNameField, byClusterName)
	}
	r.members, r.watchMembers = members, of.ensure
	return nil
}

// liveHub is the hub client for takeover.Verify, bypassing every cache.
type liveHub struct{ manager.Manager }

// Get implements takeover.Hub.
func (h liveHub) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return h.GetAPIReader().Get(ctx, key, obj, opts...) //nolint:wrapcheck // The error is the client's.
}

// Create implements takeover.Hub.
func (h liveHub) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return h.GetClient().Create(ctx, obj, opts...) //nolint:wrapcheck // The error is the client's.
}

// RESTMapper implements takeover.Hub.
func (h liveHub) RESTMapper() meta.RESTMapper { return h.GetRESTMapper() }

// newOwned is a cache of the objects that imports created. It starts an informer for a kind on first use.
func newOwned(mgr manager.Manager) (cache.Cache, error) {
	ours, err := labels.NewRequirement(fleetv1alpha1.ImportUIDLabel, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot select the objects of imports: %w", err)
	}
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultLabelSelector: labels.NewSelector().Add(*ours),
		DefaultTransform:     cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create a cache of the objects of imports: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("cannot add a cache of the objects of imports: %w", err)
	}
	return c, nil
}

// watches are the watches of the kinds that imports have needed so far.
type watches struct {
	controller controller.TypedController[reconcile.Request]
	cache      cache.Cache
	toImports  handler.MapFunc
	// before, if there is one, prepares the cache for a kind.
	before func(context.Context, client.Object) error

	mu sync.Mutex
	on map[schema.GroupKind]schema.GroupVersionKind
}

// importOfLabels maps an object to the import that its labels name.
func importOfLabels(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: ownership.ImportNamedBy(o)}}
}

// ensure watches a kind in one version, and stops watching it in another, which may not be served any more.
func (w *watches) ensure(ctx context.Context, gvk schema.GroupVersionKind) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.on[gvk.GroupKind()]
	if before == gvk {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if w.before != nil {
		if err := w.before(ctx, object); err != nil {
			return fmt.Errorf("cannot prepare to watch %s: %w", gvk.GroupKind(), err)
		}
	}
	if err := w.controller.Watch(source.Kind[client.Object](w.cache, object, handler.EnqueueRequestsFromMapFunc(w.toImports))); err != nil {
		return fmt.Errorf("cannot watch %s: %w", gvk.GroupKind(), err)
	}
	w.on[gvk.GroupKind()] = gvk
	if before.Empty() {
		return nil
	}
	object = &unstructured.Unstructured{}
	object.SetGroupVersionKind(before)
	if err := w.cache.RemoveInformer(ctx, object); err != nil {
		return fmt.Errorf("cannot stop watching %s: %w", before, err)
	}
	return nil
}

func (w *watches) kinds() []schema.GroupVersionKind {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(w.on))
}

// Reconcile advances an import, or its removal.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	imp := &fleetv1alpha1.ClusterImport{}
	if err := r.hub.Get(ctx, req.NamespacedName, imp); err != nil {
		if apierrors.IsNotFound(err) {
			return r.finalize(ctx, req.NamespacedName)
		}
		return reconcile.Result{}, fmt.Errorf("cannot get ClusterImport %q: %w", req, err)
	}
	s, res := newScope(imp), result{}
	defer func() {
		if !res.waits {
			r.kubeconfigs.places.Release(req.NamespacedName)
		}
	}()
	advance := r.importCluster
	if !imp.DeletionTimestamp.IsZero() {
		advance = r.unimport
	}
	res, err := run(func() (result, error) { return advance(ctx, s) })
	if err != nil && apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: condition.Soon}, nil
	}
	if res.gone {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err := errors.Join(err, r.report(ctx, s, res)); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: res.requeueAfter()}, nil
}

// importCluster advances an import. Each phase sets what it finds for later ones: as long as none has, nothing may be
// written. The kubeconfig is kept also where a phase ends with a problem.
func (r *Reconciler) importCluster(ctx context.Context, s *scope) (result, error) {
	if err := r.mayImport(ctx); err != nil {
		return result{}, err
	}
	var (
		hub      capabilities
		mayWrite bool
		obs      observation
		made     reflected
		k        kubeconfig
	)
	all, err := run(
		func() (res result, err error) { hub, res, err = r.preflight(ctx, s); return res, err },
		func() (result, error) { return result{}, r.checkPrevious(ctx, s) },
		func() (res result, _ error) { mayWrite, res = r.admission(ctx, s); return res, nil },
		func() (result, error) { return r.foreignMembers(ctx, s) },
		func() (result, error) { return result{}, r.collisions(ctx, s, hub, mayWrite) },
		func() (result, error) { return result{}, r.setFinalizer(ctx, s.imp, true) },
		func() (res result, err error) { obs, res, err = r.observe(ctx, s, hub, mayWrite); return res, err },
		func() (res result, err error) { obs, res, err = r.read(s, hub, obs); return res, err },
		func() (result, error) { return result{}, r.observedElsewhere(ctx, s, hub, obs) },
		func() (res result, err error) { made, res, err = r.reflectProvider(ctx, s, hub, obs); return res, err },
		func() (res result, err error) { k, res, err = r.kubeconfigs.kubeconfig(ctx, s, obs); return res, err },
		func() (result, error) { return r.reflectCluster(ctx, s, made) },
		func() (result, error) { return r.kubeconfigs.access(ctx, s, k) },
		func() (result, error) { return result{}, r.prune(ctx, s, obs, made) },
	)
	if isNotServed(err) {
		r.kinds.Remove(s.wanted.Cloud)
	}
	kept, failed := run(func() (result, error) { return r.kubeconfigs.keepKubeconfig(ctx, s, obs, all) })
	all.add(kept)
	return all, errors.Join(err, failed)
}
