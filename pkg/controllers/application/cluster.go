// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reconcileCluster applies the class of a cluster: it installs the definition of Applications, and watches these.
func (r *reconciler) reconcileCluster(ctx context.Context, w *workload.Cluster) (reconcile.Result, error) {
	cluster, enrolled := r.fleet.Lookup(w.Name)
	if !enrolled {
		// It is queued again when it is enrolled.
		return reconcile.Result{}, nil
	}
	class, err := connection.Class(ctx, r.classes, cluster.Enrolment.Class)
	if err != nil {
		// A missing class changes nothing. Its creation requeues the cluster.
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !enabled(class) {
		return r.disable(w), nil
	}
	if w.SetPolicy(record.NewPolicy(class)) {
		w.WakeLater(w.Keys()...)
	}
	if _, known := r.rules.Assessor(); !known {
		// Components assessed without the rules would be written twice. The cluster is requeued once they are known.
		return reconcile.Result{}, nil
	}
	state, err := r.ensureDefinition(ctx, w)
	problem, _ := errors.AsType[*condition.Error](err)
	if state.Served || problem != nil {
		r.reports.Definition(ctx, cluster, definition.Name, "PullDefinition", state.Served, problem)
	}
	switch {
	case state.Served:
		r.enable(w)
	case problem != nil:
		w.Idle()
		r.unwatched(w, fleetv1alpha1.ReasonNotServed, problem.Message)
	}
	return condition.Result(err)
}

// enabled reports whether the class enables Applications in its clusters.
func enabled(class *fleetv1alpha1.EnrollmentClass) bool {
	return class.Spec.Applications.Mode != fleetv1alpha1.ApplicationsModeDisabled
}

// ensureDefinition installs the definition of Applications in the cluster.
func (r *reconciler) ensureDefinition(ctx context.Context, w *workload.Cluster) (definition.State, error) {
	if w.CurrentMode() != workload.ModeEnabled {
		w.Watcher.Set(workload.OwnerFixed, record.OwnedDefinitionKind)
	}
	seen, state := w.SeeDefinition()
	switch state {
	case kindwatch.StateSynced:
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
		// Its change triggers an event.
		return definition.State{}, condition.PendingError{}
	default:
		// Definitions cannot be read. Either another client installed it, or it is missing, which the watch of
		// Applications detects.
		return definition.State{Served: true}, nil
	}
	result, err := r.definitions.ForOwner(r.ownerIn(w)).Ensure(ctx, w.Name, w.Client.Resource(definition.Resource), seen)
	if result.Wrote != "" {
		r.metrics.wrote(w.Name, writeDefinition)
	}
	return result, err
}

// enable starts reconciling the Applications of a cluster.
func (r *reconciler) enable(w *workload.Cluster) {
	if w.SetMode(workload.ModeEnabled) {
		// Observations count from now on.
		r.ifCurrent(w, func() { r.rollup.Engaged(w.Name) })
		w.Watcher.Set(workload.OwnerFixed, record.OwnedDefinitionKind, record.ApplicationKind)
		defer func() { w.WakeLater(w.Keys()...) }()
	}
	switch state, _ := w.Watcher.State(record.ApplicationKind); state {
	case kindwatch.StateSynced:
		r.sumUp(w)
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
		// Its change triggers an event.
	default:
		r.unwatched(w, fleetv1alpha1.ReasonNotServed, workload.StateProblem(state, record.ApplicationKind.GroupVersionKind).Message)
	}
}

// sumUp reports to the hub that all Applications of a cluster are known. Those not reconciled yet count with their
// stored status. Unchanged ones trigger no event, so they are tracked here.
func (r *reconciler) sumUp(w *workload.Cluster) {
	if r.rollup.IsComplete(w.Name) {
		return
	}
	entries, err := w.Watcher.Entries(record.ApplicationKind)
	if err != nil {
		return
	}
	for i := range entries {
		if app := record.ApplicationIn(&entries[i]); app != nil {
			key, s := entries[i].Key, appstatus.Summarize(app)
			w.Track(key, app)
			r.ifCurrent(w, func() { r.rollup.Offer(w.Name, key, s) })
		}
	}
	r.ifCurrent(w, func() { r.rollup.Synced(w.Name) })
}
