// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthrule"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// controllerName is the name of the controller in metrics, logs and events.
const controllerName = "application"

// Defaults of Options.
const (
	DefaultMaxConcurrentReconciles = 16
	DefaultReconciliationTimeout   = 2 * time.Minute
	DefaultRequestTimeout          = 10 * time.Second
)

// Options configure the controller.
type Options struct {
	// Fleet knows the enrolled clusters and their enrolment. Required.
	Fleet Fleet

	// Sources are queried before a cluster's report is removed. Reports of clusters of other sources are left as they
	// are.
	Sources []connection.EnrolmentGetter

	// Gate is the gate operated by the cluster provider.
	Gate *multicluster.Gate

	// Users are Masthead's usernames in the clusters, which their policy exempts. By default they are never in doubt.
	Users *install.PolicyUsers

	// Reporter receives the state of the definition of Applications in the workload clusters.
	Reporter install.Reporter

	// MaxConcurrentReconciles bounds how many Applications are reconciled at once.
	MaxConcurrentReconciles int

	// ReconciliationTimeout bounds a reconcile, RequestTimeout one request to a workload cluster.
	ReconciliationTimeout time.Duration
	RequestTimeout        time.Duration

	// HealthLibrary has the rules for kinds without a HealthRule on the hub; nil for none.
	HealthLibrary *health.Library

	// Registerer registers the metrics; nil publishes none. QueueMetrics are those of the queue. MetricsPerApplication
	// adds series for each Application, whose number is not bounded by Masthead's operator.
	Registerer            prometheus.Registerer
	QueueMetrics          *multicluster.Metrics
	MetricsPerApplication bool

	// SkipNameValidation allows two controllers of this name in one process. Only tests need it.
	SkipNameValidation *bool

	// Clock defaults to the real one.
	Clock clock.WithTicker

	// staleAfter is how long a kind may be neither listed nor watched before the health of its objects is Unknown. Tests
	// shorten it.
	staleAfter time.Duration

	// linger is how long a kind is still watched after the last Application stops naming it. Tests shorten it.
	linger time.Duration
}

func (o *Options) setDefaults() error {
	if o.Fleet == nil {
		return errors.New("the controller of Applications requires the fleet")
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.ReconciliationTimeout <= 0 {
		o.ReconciliationTimeout = DefaultReconciliationTimeout
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	if o.Users == nil {
		o.Users = &install.PolicyUsers{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.linger <= 0 {
		o.linger = lingerTimeout
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
		fleet: o.Fleet, classes: local.GetClient(), linger: o.linger, staleAfter: o.staleAfter, packer: record.NewPacker(),
		clock: o.Clock, requestTimeout: o.RequestTimeout,
	}
	r.reports = install.NewReports(o.Reporter, local.GetEventRecorder(controllerName))
	r.workloads = newWorkloads(r)
	var err error
	if r.definitions, err = definition.NewKeeper(o.RequestTimeout); err != nil {
		return nil, err
	}
	r.definitions.Users, r.definitions.Clock = o.Users, o.Clock
	r.rules = healthrule.New(local.GetClient(), local.GetClient(), o.Clock, o.HealthLibrary, r.rulesChanged)
	if err := r.rules.Setup(local, o.SkipNameValidation); err != nil {
		return nil, err
	}
	if r.rollup, err = rollup.Setup(local, o.Fleet, o.Sources, o.Clock, o.SkipNameValidation); err != nil {
		return nil, err
	}
	r.metrics = NewMetrics(o.Registerer, r.rollup, o.MetricsPerApplication)
	c, err := multicluster.NewController(controllerName, mgr, multicluster.ControllerOptions[mcreconcile.Request]{
		Reconciler: r, Clusters: r.workloads, Gate: o.Gate, MaxConcurrentReconciles: o.MaxConcurrentReconciles, Clock: o.Clock,
		ReconciliationTimeout: o.ReconciliationTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the controller %q: %w", controllerName, err)
	}
	classes := connection.ClassSource(local.GetCache(), o.Fleet, connection.EnqueueCluster)
	if err := c.Watch(classes); err != nil {
		return nil, fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
	}
	o.Fleet.Subscribe(r.enrolmentChanged)
	o.Fleet.OnOffboard(r.offboard)
	return r, nil
}

// Reconcile reconciles one Application or, if the request names none, the cluster itself.
func (r *reconciler) Reconcile(ctx context.Context, req mcreconcile.Request) (reconcile.Result, error) {
	w, engaged := r.workloads.Get(req.ClusterName)
	if !engaged {
		// It is queued again when it is engaged.
		return reconcile.Result{}, nil
	}
	var result reconcile.Result
	var err error
	if req.Name == "" {
		result, err = r.reconcileCluster(ctx, w)
	} else {
		result, err = r.reconcileApplication(ctx, w, req.NamespacedName)
	}
	return result, multicluster.AsForeign(err)
}

// rulesChanged reassesses the objects to which another HealthRule now applies.
func (r *reconciler) rulesChanged(selectors []health.Selector) {
	for _, w := range r.workloads.All() {
		// Initially, clusters wait for the rules.
		w.Enqueue()
		w.Watcher.Relist(func(gk schema.GroupKind) bool { return workload.SelectedBy(selectors, gk) })
		for _, kind := range w.KindsSelected(selectors) {
			w.WakeLater(w.Users(kind)...)
		}
	}
}

// enrolmentChanged is called on every change of every cluster. Most concern its connection.
func (r *reconciler) enrolmentChanged(name mcr.ClusterName) {
	before, now := r.enrolments.Update(name, func(string) string {
		c, _ := r.fleet.Lookup(name)
		return c.Enrolment.Class
	})
	if w, engaged := r.workloads.Get(name); engaged && before != now && now != "" {
		w.Enqueue()
	}
}

// disengaged is called when the last instance of a cluster is disengaged.
func (r *reconciler) disengaged(name mcr.ClusterName) {
	r.metrics.forgetCluster(name)
	r.rollup.Disengaged(name)
	r.reports.Forget(name, definition.Name)
}
