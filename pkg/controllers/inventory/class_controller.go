// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
)

const (
	// classControllerName is the name in logs and metrics of the controller that writes the status of EnrollmentClasses.
	classControllerName = "enrollmentclass"

	// classDelay is how long changes in the inventory are batched before counting: a fleet that is enrolled at once is
	// then counted a few times, and not once for each cluster.
	classDelay = time.Second
)

// allClasses is the one request of the class controller. A change of one cluster can affect two classes, its current
// and its previous one, and one count serves all of them.
type allClasses struct{}

// classReconciler writes the status of every EnrollmentClass. It counts ClusterProfiles and not the fleet, because they
// outlive the manager: a fleet that was just started is empty, and would be counted as such.
type classReconciler struct {
	hub   client.Client
	clock clock.Clock
}

func setupClasses(mgr manager.Manager, o Options) error {
	c, err := controller.NewTyped(classControllerName, mgr, controller.TypedOptions[allClasses]{
		Reconciler:         &classReconciler{hub: mgr.GetClient(), clock: o.Clock},
		SkipNameValidation: o.SkipNameValidation,
		LogConstructor: func(*allClasses) logr.Logger {
			return mgr.GetLogger().WithValues("controller", classControllerName)
		},
	})
	if err != nil {
		return err
	}
	type profile = *inventoryv1alpha1.ClusterProfile
	type queue = workqueue.TypedRateLimitingInterface[allClasses]
	soon := func(q queue) { q.AddAfter(allClasses{}, classDelay) }
	profiles := source.TypedKind(mgr.GetCache(), &inventoryv1alpha1.ClusterProfile{}, handler.TypedFuncs[profile, allClasses]{
		CreateFunc: func(_ context.Context, _ event.TypedCreateEvent[profile], q queue) { soon(q) },
		UpdateFunc: func(_ context.Context, _ event.TypedUpdateEvent[profile], q queue) { soon(q) },
		DeleteFunc: func(_ context.Context, _ event.TypedDeleteEvent[profile], q queue) { soon(q) },
	})
	if err := c.Watch(profiles); err != nil {
		return fmt.Errorf("cannot watch ClusterProfiles: %w", err)
	}
	toAll := func(context.Context, *fleetv1alpha1.EnrollmentClass) []allClasses { return []allClasses{{}} }
	classes := source.TypedKind(mgr.GetCache(), &fleetv1alpha1.EnrollmentClass{},
		handler.TypedEnqueueRequestsFromMapFunc(toAll))
	if err := c.Watch(classes); err != nil {
		return fmt.Errorf("cannot watch EnrollmentClasses: %w", err)
	}
	return nil
}

// Reconcile counts the clusters of each class, and writes the statuses that differ.
func (r *classReconciler) Reconcile(ctx context.Context, _ allClasses) (reconcile.Result, error) {
	var classes fleetv1alpha1.EnrollmentClassList
	if err := r.hub.List(ctx, &classes); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list EnrollmentClasses: %w", err)
	}
	var profiles inventoryv1alpha1.ClusterProfileList
	if err := r.hub.List(ctx, &profiles); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list ClusterProfiles: %w", err)
	}
	counts := countByClass(profiles.Items)
	var errs []error
	for i := range classes.Items {
		class := &classes.Items[i]
		errs = append(errs, r.write(ctx, class, classStatus(class, counts[class.Name], r.clock.Now())))
	}
	return reconcile.Result{}, kerrors.NewAggregate(errs)
}

func (r *classReconciler) write(
	ctx context.Context, class *fleetv1alpha1.EnrollmentClass, status fleetv1alpha1.EnrollmentClassStatus,
) error {
	if !class.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(class.Status, status) {
		return nil
	}
	kind := fleetv1alpha1.GroupVersion.WithKind("EnrollmentClass")
	_, err := apply.Status(ctx, r.hub, kind, class, &status, fleetv1alpha1.FieldManager)
	return err
}
