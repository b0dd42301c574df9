// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// rollupName names the controller that writes ApplicationReports in logs and metrics.
const rollupName = "application-report"

// rollupInterval is the time between two writes of the status of one report. The first change is written at once.
const rollupInterval = time.Second

// rollupFleet is the fleet to report on.
type rollupFleet interface {
	List() []connection.Cluster
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)
	Subscribe(changed func(name mcr.ClusterName))
}

// rollupRequest names the cluster whose report to reconcile. It is a struct so that logs and queues, which print
// requests, show what is named.
type rollupRequest struct {
	Cluster mcr.ClusterName
}

// rollupWriter writes the totals to the hub, one object for each enrolled cluster.
//
// One per cluster rather than one per name of an Application: a change in a cluster, or its loss, is one write, however
// many Applications it has; read access to a cluster covers its report, because both are in the same namespace; and two
// teams' Applications of the same name do not share an object. Metrics show one Application across all clusters.
type rollupWriter struct {
	hub     client.Client
	fleet   rollupFleet
	sources connection.EnrolmentGetters
	rollup  *Collector
	clock   clock.PassiveClock

	own ownWrites
}

// Setup adds to a hub's manager the controller that writes ApplicationReports, and returns its Collector. Without
// sources no report is ever removed.
func Setup(mgr manager.Manager, fleet rollupFleet, sources []connection.EnrolmentGetter, c clock.PassiveClock, skipNameValidation *bool) (*Collector, error) {
	w := &rollupWriter{
		hub: mgr.GetClient(), fleet: fleet, sources: connection.NewEnrolmentGetters(sources), rollup: NewCollector(c), clock: c,
		own: ownWrites{last: map[mcr.ClusterName]ownWrite{}},
	}
	ctrl, err := controller.NewTyped(rollupName, mgr, controller.TypedOptions[rollupRequest]{
		Reconciler:              w,
		MaxConcurrentReconciles: 5,
		SkipNameValidation:      skipNameValidation,
		LogConstructor: func(req *rollupRequest) logr.Logger {
			l := mgr.GetLogger().WithValues("controller", rollupName)
			if req != nil {
				l = l.WithValues("cluster", req.Cluster)
			}
			return l
		},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the controller %q: %w", rollupName, err)
	}
	if err := ctrl.Watch(w.changes()); err != nil {
		return nil, fmt.Errorf("cannot watch the fleet: %w", err)
	}
	reports := source.TypedKind(mgr.GetCache(), &fleetv1alpha1.ApplicationReport{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, report *fleetv1alpha1.ApplicationReport) []rollupRequest {
			name, ok := reportedCluster(report)
			if !ok {
				return nil
			}
			return []rollupRequest{{Cluster: name}}
		}))
	if err := ctrl.Watch(reports); err != nil {
		return nil, fmt.Errorf("cannot watch ApplicationReports: %w", err)
	}
	return w.rollup, nil
}

// changes enqueues every existing cluster, and each that changes or whose Applications do. The queue ignores requests
// after shutdown.
func (w *rollupWriter) changes() source.TypedSource[rollupRequest] {
	return source.TypedFunc[rollupRequest](func(_ context.Context, q workqueue.TypedRateLimitingInterface[rollupRequest]) error {
		add := func(name mcr.ClusterName) { q.Add(rollupRequest{Cluster: name}) }
		w.rollup.onChange(add)
		w.fleet.Subscribe(add)
		for _, c := range w.fleet.List() {
			add(c.Name)
		}
		return nil
	})
}

// reportedCluster is the cluster that a report is about. A report in the wrong place is about none: it was copied or
// altered.
func reportedCluster(report *fleetv1alpha1.ApplicationReport) (mcr.ClusterName, bool) {
	name := mcr.ClusterName(report.Annotations[fleetv1alpha1.ClusterNameAnnotation])
	key, ok := connection.ParseClusterName(name)
	return name, ok && key.Published() == client.ObjectKeyFromObject(report)
}

// Reconcile updates the report of one cluster.
func (w *rollupWriter) Reconcile(ctx context.Context, req rollupRequest) (reconcile.Result, error) {
	key, ok := connection.ParseClusterName(req.Cluster)
	if !ok {
		return reconcile.Result{}, reconcile.TerminalError(fmt.Errorf("%q is not the name of a cluster", req.Cluster))
	}
	cluster, enrolled := w.fleet.Lookup(req.Cluster)
	existing, err := w.get(ctx, req.Cluster, key)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !enrolled {
		return reconcile.Result{}, w.remove(ctx, req.Cluster, key, existing)
	}
	again, err := w.publish(ctx, key, cluster, existing)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		// Another writer was faster, or the report was replaced: the cache has the change, or soon will.
		w.own.forget(req.Cluster)
		again, err = rollupInterval, nil
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// publish writes what differs, if anything does.
func (w *rollupWriter) publish(
	ctx context.Context, key connection.Key, cluster connection.Cluster, existing *fleetv1alpha1.ApplicationReport,
) (again time.Duration, err error) {
	if existing != nil && ownedByAnother(existing, cluster) {
		return 0, w.discard(ctx, cluster.Name, existing) // Its deletion triggers another reconcile.
	}
	if existing == nil && cluster.Unenrolled {
		// The owner may be gone. Kubernetes would delete a report with such an owner at once, again and again.
		return 0, nil
	}
	if existing == nil || reportMetadataDiffers(existing, cluster) {
		if existing, err = w.applyMetadata(ctx, key, cluster, existing); err != nil {
			return 0, err
		}
	}
	if wait := w.own.pause(cluster.Name, w.clock.Now()); wait > 0 {
		return wait, nil
	}
	view := w.rollup.view(cluster.Name, cluster.State == connection.StateConnected)
	status, again := reportStatus(cluster, view, existing.Status, existing.Generation, w.clock.Now())
	if !reportDiffers(existing.Status, status) {
		return again, nil
	}
	return again, w.applyStatus(ctx, key, cluster.Name, existing, status)
}

// get returns the report of a cluster, or nil if there is none. If the cache does not show our last write yet, its
// result is returned.
func (w *rollupWriter) get(ctx context.Context, name mcr.ClusterName, key connection.Key) (*fleetv1alpha1.ApplicationReport, error) {
	report := &fleetv1alpha1.ApplicationReport{}
	err := w.hub.Get(ctx, key.Published(), report)
	if apierrors.IsNotFound(err) {
		return w.own.read(name, nil), nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get ApplicationReport %q: %w", key.Published(), err)
	}
	return w.own.read(name, report), nil
}

// remove removes the report of a cluster that is not in the fleet, if the cluster's source says that it is no longer
// enrolled.
func (w *rollupWriter) remove(ctx context.Context, name mcr.ClusterName, key connection.Key, existing *fleetv1alpha1.ApplicationReport) error {
	if left, err := w.sources.HasLeft(ctx, key); err != nil || !left {
		return err
	}
	w.rollup.drop(name)
	w.own.drop(name)
	if existing == nil || !existing.DeletionTimestamp.IsZero() {
		return nil
	}
	if about, ok := reportedCluster(existing); !ok || about != name {
		return nil
	}
	err := w.discard(ctx, name, existing)
	if apierrors.IsConflict(err) {
		return nil // The watch reports the current state.
	}
	return err
}

// discard deletes a report. The preconditions ensure that only the examined report is deleted.
func (w *rollupWriter) discard(ctx context.Context, name mcr.ClusterName, report *fleetv1alpha1.ApplicationReport) error {
	w.rollup.replaced(name)
	w.own.forget(name)
	err := w.hub.Delete(ctx, report, client.Preconditions{UID: &report.UID, ResourceVersion: &report.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete ApplicationReport %q: %w", client.ObjectKeyFromObject(report), err)
	}
	return nil
}

// reportOwner is the enrolled object: the report is deleted with it, even while no manager runs. The ClusterProfile has
// the same owner.
func reportOwner(cluster connection.Cluster) metav1.OwnerReference {
	o := cluster.Enrolment.Object
	return metav1.OwnerReference{APIVersion: o.GroupVersion().String(), Kind: o.Kind, Name: o.Name, UID: o.UID}
}
