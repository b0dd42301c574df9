// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/references"
)

// DefaultMaxConcurrentReconciles is a default of Options.
const DefaultMaxConcurrentReconciles = 16

// reconcileTimeout ends a reconcile that hangs.
const reconcileTimeout = time.Minute

// Options configure the controller.
type Options struct {
	// Fleet looks up the enrolled clusters. Required.
	Fleet Fleet

	// HubClass is the EnrollmentClass whose references settings apply to objects of the hub itself; empty for none.
	HubClass string

	// Gate is the gate that the cluster provider opens and closes.
	Gate *multicluster.Gate

	// MaxConcurrentReconciles bounds how many objects are reconciled at once.
	MaxConcurrentReconciles int

	// Registerer registers the metrics; nil publishes none. QueueMetrics are those of the queue.
	Registerer   prometheus.Registerer
	QueueMetrics *multicluster.Metrics

	// Clock is the real one by default.
	Clock clock.WithTicker

	// SkipNameValidation allows two controllers of this name in one process, which only tests need.
	SkipNameValidation *bool
}

func (o *Options) setDefaults() error {
	if o.Fleet == nil {
		return errors.New("the controller of references requires the fleet")
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = DefaultMaxConcurrentReconciles
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}

// Setup adds the controller to a manager.
func Setup(mgr mcmanager.Manager, o Options) error {
	if err := o.setDefaults(); err != nil {
		return err
	}
	local := mgr.GetLocalManager()
	r := &reconciler{fleet: o.Fleet, hubClass: o.HubClass, classes: local.GetClient(), resolver: references.NewResolver(), clock: o.Clock}
	r.logs = multicluster.LogConstructor[Request](local.GetLogger(), controllerName)
	r.metrics = NewMetrics(o.Registerer)
	r.workloads = newWorkloads(r)
	registerGauges(o.Registerer, r)
	c, err := multicluster.NewController(controllerName, mgr, multicluster.ControllerOptions[Request]{
		Reconciler: r, Clusters: r.workloads, Gate: o.Gate, MaxConcurrentReconciles: o.MaxConcurrentReconciles, Clock: o.Clock,
		ReconciliationTimeout: reconcileTimeout, Metrics: o.QueueMetrics, SkipNameValidation: o.SkipNameValidation,
	})
	if err != nil {
		return fmt.Errorf("cannot create the controller %q: %w", controllerName, err)
	}
	if o.HubClass != "" {
		if err := c.Watch(r.hubSource(local)); err != nil {
			return fmt.Errorf("cannot watch the hub: %w", err)
		}
	}
	classes := connection.ClassSource(local.GetCache(), classUsers{o.Fleet, o.HubClass}, enqueueCluster)
	if err := c.Watch(classes); err != nil {
		return fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
	}
	o.Fleet.Subscribe(func(name mcr.ClusterName) {
		w, engaged := r.workloads.Get(name)
		if engaged && w.isOfAnother(r.className(name)) {
			w.enqueue()
		}
	})
	return nil
}

func enqueueCluster(name mcr.ClusterName, q workqueue.TypedRateLimitingInterface[Request]) {
	q.Add(Request{ClusterName: name})
}

// Reconcile reconciles one object or, if the request names none, the cluster itself.
func (r *reconciler) Reconcile(ctx context.Context, req Request) (reconcile.Result, error) {
	w, engaged := r.instance(req.ClusterName)
	if !engaged {
		// Engaging the cluster queues it again.
		return reconcile.Result{}, nil
	}
	var result reconcile.Result
	var err error
	if req.Name == "" {
		err = r.reconcileCluster(ctx, w)
	} else {
		result, err = r.reconcileObject(ctx, w, req)
	}
	return result, multicluster.AsForeign(err)
}

// className is the class that applies to a cluster.
func (r *reconciler) className(name mcr.ClusterName) string {
	if name == hubName {
		return r.hubClass
	}
	c, _ := r.fleet.Lookup(name)
	return c.Enrolment.Class
}

// reconcileCluster decides which kinds of a cluster are managed.
func (r *reconciler) reconcileCluster(ctx context.Context, w *workload) error {
	class, err := connection.Class(ctx, r.classes, r.className(w.name))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if class == nil || class.Spec.References.Mode != fleetv1alpha1.ReferencesModeEnabled {
		w.definitions.Release(ownerDefinitions)
		w.ignore()
		r.metrics.forgetCluster(w.name)
		return nil
	}
	w.definitions.Set(ownerDefinitions, definitionKind)
	defined, err := w.defined()
	if err != nil {
		// They are not synced yet. An event follows when they are.
		return nil //nolint:nilerr // The comment says so.
	}
	w.lookAfter(defined, newTenancy(class.Spec.References))
	return nil
}

// newTenancy is what a class permits.
func newTenancy(spec fleetv1alpha1.ReferencesSpec) references.Tenancy {
	var t references.Tenancy
	for _, c := range spec.ClusterScoped {
		t.ClusterScoped = append(t.ClusterScoped, schema.GroupResource{Group: c.Group, Resource: c.Resource})
	}
	for _, s := range spec.Secrets {
		t.Secrets = append(t.Secrets, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
	}
	for _, f := range spec.SecretFields {
		t.SecretFields = append(t.SecretFields, references.SecretField{
			GroupKind: schema.GroupKind{Group: f.Group, Kind: f.Kind}, FieldPath: f.FieldPath,
		})
	}
	return t
}
