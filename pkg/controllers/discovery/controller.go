// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// controllerName is the name of the controller in metrics, logs and events.
const controllerName = "discovery"

// reconcileTimeout ends a reconcile that hangs.
const reconcileTimeout = time.Minute

// Defaults of Options.
const (
	DefaultMaxConcurrentReconciles = 16
	DefaultRequestTimeout          = 10 * time.Second
)

// Options configure the controller.
type Options struct {
	// Fleet looks up the enrolled clusters. Required.
	Fleet Fleet

	// Gate is the gate that the cluster provider opens and closes.
	Gate *multicluster.Gate

	// Users holds Masthead's username in each cluster. Share it with other controllers that can doubt a username. Default:
	// not shared.
	Users *install.PolicyUsers

	// Reporter receives the state of the definitions of mirrored kinds in workload clusters.
	Reporter install.Reporter

	// MaxConcurrentReconciles bounds how many clusters are reconciled at once.
	MaxConcurrentReconciles int

	// RequestTimeout ends a request to a workload cluster that hangs.
	RequestTimeout time.Duration

	// Registerer registers the metrics; nil publishes none. QueueMetrics are those of the queue.
	Registerer   prometheus.Registerer
	QueueMetrics *multicluster.Metrics

	// Clock is the real one by default.
	Clock clock.PassiveClock

	// SkipNameValidation allows two controllers of this name in one process, which only tests need.
	SkipNameValidation *bool
}

func (o *Options) setDefaults() error {
	if o.Fleet == nil {
		return errors.New("discovery requires the fleet")
	}
	if o.Users == nil {
		o.Users = &install.PolicyUsers{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	return nil
}

// Setup adds the controller to a manager.
func Setup(mgr mcmanager.Manager, o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	_, err := setup(mgr, o)
	return err
}

func setup(mgr mcmanager.Manager, o Options) (*reconciler, error) {
	local := mgr.GetLocalManager()
	r := &reconciler{
		fleet: o.Fleet, classes: local.GetClient(), requestTimeout: o.RequestTimeout, clock: o.Clock,
	}
	r.reports = newReports(local.GetEventRecorder(controllerName), o.Reporter, NewMetrics(o.Registerer))
	r.workloads = newWorkloads(r.reports, o.Users, o.Clock.Now)
	r.hub = newHub(r.enqueueAll)

	watched, err := multicluster.WatchOptions(local)
	if err != nil {
		return nil, fmt.Errorf("cannot create clients for the hub: %w", err)
	}
	// The hub's administrator controls what is in the hub.
	watched.Handler, watched.PerKind, watched.Total = r.hub.handle, kindwatch.Unlimited, kindwatch.Unlimited
	if r.hub.watcher, err = kindwatch.New(watched); err != nil {
		return nil, fmt.Errorf("cannot watch the hub: %w", err)
	}
	r.hub.watchDefinitions()

	c, err := multicluster.NewController(controllerName, mgr, multicluster.ControllerOptions[mcreconcile.Request]{
		Reconciler: r, Clusters: r.workloads, Gate: o.Gate, MaxConcurrentReconciles: o.MaxConcurrentReconciles,
		ReconciliationTimeout: reconcileTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the controller %q: %w", controllerName, err)
	}
	classes := connection.ClassSource(local.GetCache(), o.Fleet, connection.EnqueueCluster)
	if err := c.Watch(classes); err != nil {
		return nil, fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
	}
	if err := local.Add(manager.RunnableFunc(r.hub.watcher.Start)); err != nil {
		return nil, fmt.Errorf("cannot add the watches of the hub to the manager: %w", err)
	}
	o.Fleet.Subscribe(r.enrolmentChanged)
	o.Fleet.OnOffboard(r.offboard)
	o.Users.OnDoubt(r.enqueue)
	return r, nil
}

// Reconcile mirrors into one workload cluster what the hub has and its class offers.
func (r *reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	result, err := r.reconcile(ctx, req)
	return result, multicluster.AsForeign(err)
}

func (r *reconciler) reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	w, engaged := r.workloads.Get(req.ClusterName)
	cluster, enrolled := r.fleet.Lookup(req.ClusterName)
	if !engaged || !enrolled {
		// Engaging the cluster queues it again.
		return reconcile.Result{}, nil
	}
	class, err := connection.Class(ctx, r.classes, cluster.Enrolment.Class)
	if err != nil {
		// Nothing is removed because a class is missing. Creating the class queues the cluster again.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return r.newPass(w, cluster, newOffer(class.Spec)).run(ctx)
}

// enrolmentChanged is called for every change of every cluster. New credentials or a reconnect can change Masthead's
// username in the cluster.
func (r *reconciler) enrolmentChanged(name mcr.ClusterName) {
	before, now := r.enrolments.Update(name, func(enrolment) enrolment {
		c, _ := r.fleet.Lookup(name)
		return enrolment{class: c.Enrolment.Class, credentials: c.Enrolment.CredentialsVersion, state: c.State}
	})
	w, engaged := r.workloads.Get(name)
	if !engaged || before == now || now == (enrolment{}) {
		return
	}
	if before.credentials != now.credentials || before.state != now.state {
		w.user.Doubt(r.clock.Now())
	}
	w.enqueue()
}

// enqueue requeues a cluster to ask it for Masthead's username.
func (r *reconciler) enqueue(name mcr.ClusterName) {
	if w, engaged := r.workloads.Get(name); engaged {
		w.enqueue()
	}
}

// enqueueAll requeues every cluster.
func (r *reconciler) enqueueAll() {
	for _, w := range r.workloads.All() {
		w.enqueue()
	}
}
