// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// An Application that is no longer observed must not claim to be healthy. When a cluster leaves, or its class disables
// Applications, each status is updated once to say so. Owner references stay: they remain true without being observed.

// Bounds of offboarding a cluster.
const (
	offboardTimeout     = 30 * time.Second
	maxOffboardedAtOnce = 8
	disabledLookAgain   = time.Second
)

// offboard marks every Application of a cluster as unobserved. It is called while the cluster is still connected and
// none of its reconciles runs any more. It gives up as soon as the cluster does not answer.
func (r *reconciler) offboard(ctx context.Context, name mcr.ClusterName) error {
	w, engaged := r.workloads.Get(name)
	if !engaged || w.CurrentMode() != workload.ModeEnabled {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, offboardTimeout)
	defer cancel()
	var reported atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxOffboardedAtOnce)
	for key := range w.UIDs() {
		group.Go(func() error {
			return w.Guard.Run("offboarding an Application", func() error { return r.reportUnwatched(ctx, w, key, &reported) })
		})
	}
	err := group.Wait()
	log.FromContext(ctx).Info("Offboarded the Applications of a cluster", "applications", reported.Load())
	if err != nil {
		return fmt.Errorf(
			"cannot report to the Applications of cluster %q that they are no longer watched: %w", name, multicluster.AsForeign(err))
	}
	return nil
}

// reportUnwatched marks one Application as unobserved. It is not requeued, so on a conflict this waits for the watch to
// show the other change.
func (r *reconciler) reportUnwatched(ctx context.Context, w *workload.Cluster, key record.ApplicationKey, reported *atomic.Int64) error {
	var last error
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 8}
	err := backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		s, _ := r.newScope(w, key) // An invalid Application is not updated.
		if s == nil {
			last = nil
			return true, nil
		}
		if _, last = s.writeStatus(ctx, s.unseen()); last == nil {
			reported.Add(1)
		}
		return !errors.Is(last, errChanged), nil
	})
	if last != nil {
		return last
	}
	return err
}

// unseen is the status of an Application that is no longer observed.
func (s *scope) unseen() appsv1alpha1.ApplicationStatus {
	why := condition.Error{Reason: appsv1alpha1.ReasonNotEnrolled, Message: "Masthead no longer watches the Applications of this cluster."}
	return appstatus.Build(appstatus.UnseenApplication(s.app, why), metav1.NewTime(s.r.clock.Now()))
}

// disable marks the Applications of a cluster as unobserved, and then stops watching them.
func (r *reconciler) disable(w *workload.Cluster) reconcile.Result {
	if w.CurrentMode() == workload.ModeIdle {
		// This includes Applications that a previous manager left unmarked.
		w.Watcher.Set(workload.OwnerFixed, record.ApplicationKind)
	}
	w.Watcher.Release(workload.OwnerForeign)
	if w.SetMode(workload.ModeDisabled) {
		r.reports.Forget(w.Name, definition.Name)
		r.unwatched(w, fleetv1alpha1.ReasonDisabled, "The EnrollmentClass of the cluster disables Applications.")
		w.WakeLater(w.Keys()...)
	}
	if state, _ := w.Watcher.State(record.ApplicationKind); state == kindwatch.StateSyncing {
		// Its change triggers an event.
		return reconcile.Result{}
	}
	for key := range w.UIDs() {
		if app := w.Application(key); app != nil && app.DeletionTimestamp == nil && !isReportedUnwatched(app) {
			w.WakeLater(key)
			return reconcile.Result{RequeueAfter: disabledLookAgain}
		}
	}
	w.Watcher.Release(workload.OwnerFixed)
	for key := range w.UIDs() {
		w.Untrack(key)
	}
	return reconcile.Result{}
}

// isReportedUnwatched reports whether the status says that the Application is not observed.
func isReportedUnwatched(app *appsv1alpha1.Application) bool {
	c := meta.FindStatusCondition(app.Status.Conditions, appsv1alpha1.ConditionComponentsWatched)
	return c != nil && c.Reason == appsv1alpha1.ReasonNotEnrolled
}

// disable marks the Application as unobserved, and stops watching its kinds.
func (s *scope) disable(ctx context.Context) error {
	if s.w.CurrentMode() != workload.ModeDisabled {
		return nil
	}
	s.w.Wanted.Want(s.key, nil)
	s.w.Watch(s.key, s.tracked, nil, nil)
	_, err := s.writeStatus(ctx, s.unseen())
	return err
}
