// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// ControllerOptions configure a Controller. Defaults come from the controller options of the manager.
type ControllerOptions[R mcreconcile.ClusterAware[R]] struct {
	// Reconciler is required. It finds the name of the request's cluster in the context (mccontext.ClusterFrom).
	Reconciler reconcile.TypedReconciler[R]

	// Clusters are the workload clusters that the controller watches. Without them, it watches none.
	Clusters Clusters[R]

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

// Clusters watch workload clusters for a Controller. Instances implement it.
type Clusters[R mcreconcile.ClusterAware[R]] interface {
	SyncWaiter

	// start is called when the controller starts.
	start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R])
	// engage does not block.
	engage(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster)
}

// Controller reconciles requests of the hub and of all engaged clusters. It wraps controller-runtime's controller and
// replaces multicluster-runtime's mcController (v0.24.1), because of these problems:
//
//   - Engage starts every source with two locks held, and the source waits for its cluster: one unreachable cluster
//     blocks the engagement of all others for good, and if it was engaged before the start, it ends the manager after
//     two minutes (the same as redpanda-data/redpanda-operator#1440). Here Engage never waits: a goroutine of
//     each engagement creates the instance, without a lock held, and retries that if it fails.
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
	inner    controller.TypedController[R]
	clusters Clusters[R]
}

var (
	_ mcmanager.Runnable             = &Controller[mcreconcile.Request]{}
	_ manager.LeaderElectionRunnable = &Controller[mcreconcile.Request]{}
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
	c := &Controller[R]{clusters: o.Clusters}
	inner := controller.TypedOptions[R]{
		Reconciler:              &clusterReconciler[R]{wrapped: o.Reconciler, getCluster: mgr.GetCluster},
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
	if o.Clusters != nil {
		// The inner controller starts this source with its context and queue.
		start := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[R]) error {
			o.Clusters.start(logf.IntoContext(ctx, c.GetLogger()), q)
			return nil
		}
		if err := c.inner.Watch(source.TypedFunc[R](start)); err != nil {
			return nil, fmt.Errorf("cannot create controller %q: %w", name, err)
		}
		if o.Gate != nil {
			o.Gate.addWaiter(o.Clusters)
		}
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("cannot add controller %q to the manager: %w", name, err)
	}
	return c, nil
}

// Watch adds a source on the hub, whose requests contain the name of their cluster.
func (c *Controller[R]) Watch(src source.TypedSource[R]) error { return c.inner.Watch(src) }

// Engage starts to watch a cluster, until ctx ends. It never waits for the cluster. It does nothing if the same
// instance is already engaged; another live instance of the same name is watched in parallel.
func (c *Controller[R]) Engage(ctx context.Context, name mcr.ClusterName, cl cluster.Cluster) error {
	if c.clusters != nil {
		c.clusters.engage(ctx, name, cl)
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
