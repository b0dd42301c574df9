// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mccontroller "sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
	mcsource "sigs.k8s.io/multicluster-runtime/pkg/source"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// ControllerOptions configure a Controller. Defaults come from the controller options of the manager.
type ControllerOptions[R mcreconcile.ClusterAware[R]] struct {
	// Reconciler is required. It finds the name of the request's cluster in the context (mccontext.ClusterFrom).
	Reconciler reconcile.TypedReconciler[R]

	// Gate is the gate that the cluster provider controls. Without one, every request is dispatched.
	Gate *Gate

	// MaxConcurrentReconciles is the number of workers, 1 by default. Twice as many reconciles may run in addition for
	// clusters that hang.
	MaxConcurrentReconciles int

	// MaxInFlightPerCluster limits how many of the workers one workload cluster may occupy; see FairQueueOptions.
	MaxInFlightPerCluster int

	// ReconciliationTimeout ends the context of a reconcile.
	ReconciliationTimeout time.Duration

	// RateLimiter delays failed requests; see FairQueueOptions.
	RateLimiter workqueue.TypedRateLimiter[R]

	// Metrics, if set, publishes metrics of the queue.
	Metrics *Metrics

	// LogConstructor defaults to the function LogConstructor with the manager's logger.
	LogConstructor func(*R) logr.Logger

	// NeedLeaderElection is true by default. Unlike multicluster-runtime's controller, this one honours false.
	NeedLeaderElection *bool

	// SkipNameValidation allows two controllers with the same name, for tests only.
	SkipNameValidation *bool

	// Clock is the real one by default.
	Clock clock.WithTicker
}

// Controller reconciles requests of the hub and of all engaged clusters. It wraps controller-runtime's controller and
// replaces multicluster-runtime's mcController (v0.24.1), because of these problems:
//
//   - Engage starts every source with two locks held, and the source waits for its cluster: one unreachable cluster
//     blocks the engagement of all others for good, and if it was engaged before the start, it ends the manager after
//     two minutes (the same as redpanda-data/redpanda-operator#1440). Here Engage never waits: a source starts in its
//     own goroutine, without a lock held, and is retried if it fails.
//   - A goroutine for each source of each engagement lives until the controller stops. Here all goroutines of an
//     engagement end with its context.
//   - NeedLeaderElection is hidden, since only the interface is embedded (milo-os/milo#732). Here it is honoured.
//   - A new instance of a cluster replaces the old one before the new one's watches have started. Here two live
//     instances of one name are watched in parallel, and each one's watches end with its own context. Together with
//     WaitForSync this allows make-before-break.
//   - The manager's controller options are ignored (kubernetes-sigs/multicluster-runtime#163). Here they are defaults.
//
// It uses a fair queue, LogConstructor, and a wrapped reconciler: mcr.ErrClusterNotFound counts as success; resource
// version conflicts and ErrClusterNotConnected are retried with back-off, without being logged or counted as errors.
type Controller[R mcreconcile.ClusterAware[R]] struct {
	inner controller.TypedController[R]
	clock clock.WithTicker

	// mu is never held while a source or a cluster is called.
	mu          sync.Mutex
	sources     []mcsource.TypedSource[client.Object, R]
	engagements map[mcr.ClusterName][]*engagement[R]
	// ctx and queue are set when the controller starts its sources.
	ctx   context.Context //nolint:containedctx // It is the parent of what each engagement runs.
	queue workqueue.TypedRateLimitingInterface[R]
}

var (
	_ mccontroller.TypedController[mcreconcile.Request] = &Controller[mcreconcile.Request]{}
	_ manager.LeaderElectionRunnable                    = &Controller[mcreconcile.Request]{}
	_ SyncWaiter                                        = &Controller[mcreconcile.Request]{}
)

// NewController returns a controller that is added to the manager, which starts it and engages every cluster with it.
func NewController[R mcreconcile.ClusterAware[R]](
	name string, mgr mcmanager.Manager, o ControllerOptions[R],
) (*Controller[R], error) {
	if o.Reconciler == nil {
		return nil, errors.New("cannot create a controller without a reconciler")
	}
	if o.LogConstructor == nil {
		o.LogConstructor = LogConstructor[R](mgr.GetLogger(), name)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller[R]{clock: o.Clock, engagements: map[mcr.ClusterName][]*engagement[R]{}}
	inner := controller.TypedOptions[R]{
		Reconciler:              &clusterReconciler[R]{wrapped: o.Reconciler, guardFor: c.clusterGuard},
		MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		ReconciliationTimeout:   o.ReconciliationTimeout,
		RateLimiter:             o.RateLimiter,
		LogConstructor:          o.LogConstructor,
		NeedLeaderElection:      o.NeedLeaderElection,
		SkipNameValidation:      o.SkipNameValidation,
	}
	inner.DefaultFromConfig(mgr.GetControllerOptions())
	workers := max(1, inner.MaxConcurrentReconciles)
	inner.MaxConcurrentReconciles = workers * goroutinesPerWorker
	inner.NewQueue = func(name string, limiter workqueue.TypedRateLimiter[R]) workqueue.TypedRateLimitingInterface[R] {
		return NewFairQueue(name, FairQueueOptions[R]{
			Gate:                  o.Gate,
			Workers:               workers,
			MaxInFlightPerCluster: o.MaxInFlightPerCluster,
			RateLimiter:           limiter,
			Metrics:               o.Metrics,
			Clock:                 o.Clock,
		})
	}
	var err error
	if c.inner, err = controller.NewTypedUnmanaged(name, inner); err != nil {
		return nil, fmt.Errorf("cannot create controller %q: %w", name, err)
	}
	// This source receives the context and the queue when the inner controller starts. Passing each engagement's sources
	// to Watch instead would run them with the inner controller's lock held, and before the start would keep them for
	// clusters that have left meanwhile.
	if err := c.inner.Watch(source.TypedFunc[R](c.startSources)); err != nil {
		return nil, fmt.Errorf("cannot create controller %q: %w", name, err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("cannot add controller %q to the manager: %w", name, err)
	}
	if o.Gate != nil {
		o.Gate.addWaiter(c)
	}
	return c, nil
}

// Watch adds a source on the hub, whose requests contain the name of their cluster.
func (c *Controller[R]) Watch(src source.TypedSource[R]) error { return c.inner.Watch(src) }

// MultiClusterWatch adds a source for every cluster that is engaged, now or later.
func (c *Controller[R]) MultiClusterWatch(src mcsource.TypedSource[client.Object, R]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	// All or nothing: if it fails for one cluster, it must not be added for the others.
	runs := map[*engagement[R]]*sourceRun[R]{}
	for name, engagements := range c.engagements {
		for _, e := range engagements {
			run, err := newSourceRun(src, name, e.cluster)
			if err != nil {
				return err
			}
			if run != nil {
				runs[e] = run
			}
		}
	}
	c.sources = append(c.sources, src)
	for e, run := range runs {
		e.runs = append(e.runs, run)
		if c.queue != nil {
			go c.run(e, run)
		}
	}
	return nil
}

// Engage starts to watch a cluster, until ctx ends. It never waits for the cluster. It does nothing if the same
// instance is already engaged; another live instance of the same name is watched in parallel.
func (c *Controller[R]) Engage(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.find(name, cl) != nil || ctx.Err() != nil {
		return nil
	}
	e := &engagement[R]{name: name, cluster: cl}
	for _, src := range c.sources {
		run, err := newSourceRun(src, name, cl)
		if err != nil {
			return err
		}
		if run != nil {
			e.runs = append(e.runs, run)
		}
	}
	e.ctx, e.cancel = context.WithCancel(ctx) //nolint:gosec // disengage cancels it.
	c.engagements[name] = append(c.engagements[name], e)
	// AfterFunc avoids one waiting goroutine per engagement.
	context.AfterFunc(e.ctx, func() { c.disengage(e) }) //nolint:contextcheck // It is the end of ctx that is waited for.
	if c.queue != nil {
		c.start(e)
	}
	return nil
}

// Synced reports whether WaitForSync would return nil at once.
func (c *Controller[R]) Synced(name mcr.ClusterName, cl cluster.Cluster) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.find(name, cl)
	return e != nil && !slices.ContainsFunc(e.runs, func(run *sourceRun[R]) bool {
		select {
		case <-run.synced:
			return false
		default:
			return true
		}
	})
}

// WaitForSync implements SyncWaiter.
func (c *Controller[R]) WaitForSync(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	c.mu.Lock()
	e := c.find(name, cl)
	var runs []*sourceRun[R]
	if e != nil {
		runs = slices.Clone(e.runs)
	}
	c.mu.Unlock()
	if e == nil {
		return fmt.Errorf("cannot wait for the watches on cluster %q: %w", name, errNotEngaged)
	}
	for _, run := range runs {
		select {
		case <-run.synced:
		case <-e.ctx.Done():
			return fmt.Errorf("cannot wait for the watches on cluster %q: %w", name, errNotEngaged)
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the watches on cluster %q: %w", name, context.Cause(ctx))
		}
	}
	return nil
}

// Start implements manager.Runnable.
func (c *Controller[R]) Start(ctx context.Context) error { return c.inner.Start(ctx) }

// Reconcile implements reconcile.TypedReconciler.
func (c *Controller[R]) Reconcile(ctx context.Context, req R) (reconcile.Result, error) {
	return c.inner.Reconcile(ctx, req)
}

// GetLogger implements controller.TypedController.
func (c *Controller[R]) GetLogger() logr.Logger { return c.inner.GetLogger() }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Controller[R]) NeedLeaderElection() bool {
	l, ok := c.inner.(manager.LeaderElectionRunnable)
	return !ok || l.NeedLeaderElection()
}

// clusterGuard returns the guard of the last engaged instance of a cluster, or nil.
func (c *Controller[R]) clusterGuard(name mcr.ClusterName) *guard.Guard {
	c.mu.Lock()
	defer c.mu.Unlock()
	engagements := c.engagements[name]
	if len(engagements) == 0 {
		return nil
	}
	return GetGuard(engagements[len(engagements)-1].cluster)
}

// find returns the live engagement of an instance, or nil.
func (c *Controller[R]) find(name mcr.ClusterName, cl cluster.Cluster) *engagement[R] {
	for _, e := range c.engagements[name] {
		if e.cluster == cl && e.ctx.Err() == nil {
			return e
		}
	}
	return nil
}
