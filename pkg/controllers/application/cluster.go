// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reconcileCluster has a cluster do what its class says: it gets the definition of Applications, and these are watched.
func (r *reconciler) reconcileCluster(ctx context.Context, w *workload) (reconcile.Result, error) {
	cluster, enrolled := r.fleet.Lookup(w.name)
	if !enrolled {
		// Enrolling it queues it again.
		return reconcile.Result{}, nil
	}
	class, err := connection.Class(ctx, r.classes, cluster.Enrolment.Class)
	if err != nil || class == nil {
		// Nothing changes because a class is missing. Its coming queues the cluster again.
		return reconcile.Result{}, err
	}
	if !enabled(class) {
		return r.disable(w), nil
	}
	if w.setPolicy(record.PolicyOf(class)) {
		w.wakeLater(w.keys()...)
	}
	if _, known := r.rules.Assessor(); !known {
		// Components that are judged without the rules would be written about twice. That they are known queues it again.
		return reconcile.Result{}, nil
	}
	state, err := r.ensureDefinition(ctx, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case state.Served:
		r.reporter.Served(w.name, state.Notice)
		r.enable(w)
	case state.Problem != nil:
		r.reporter.DefinitionRefused(w.name, definition.Name, state.Problem.Reason, state.Problem.Message)
		w.idle()
		r.unwatched(w, fleetv1alpha1.ReasonNotServed, state.Problem.Message)
	}
	return reconcile.Result{RequeueAfter: state.Again}, nil
}

// enabled is whether the Applications in the clusters of a class are looked after.
func enabled(class *fleetv1alpha1.EnrollmentClass) bool {
	return class.Spec.Applications.Mode != fleetv1alpha1.ApplicationsModeDisabled
}

// ensureDefinition puts the definition of Applications into the cluster.
func (r *reconciler) ensureDefinition(ctx context.Context, w *workload) (definition.State, error) {
	if w.currentMode() != modeEnabled {
		w.watcher.Set(ownerFixed, record.OwnedDefinitionKind)
	}
	seen, state := w.seeDefinition()
	switch state {
	case kindwatch.StateSynced:
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
		// That it is another one is an event.
		return definition.State{}, nil
	default:
		// Definitions cannot be seen. It is either there, put there by somebody who may, or it is not, which the watch of
		// Applications finds out.
		return definition.State{Served: true}, nil
	}
	result, err := r.definitions.Of(r.ownerIn(w)).Ensure(ctx, w.name, w.client.Resource(definition.Resource), seen)
	if result.Wrote != "" {
		r.metrics.wrote(w.name, writeDefinition)
	}
	return result, err
}

// seeDefinition returns what the watch says of the definition of Applications, nil if there is none, and how far that
// is known. One that does not bear our label is looked for in a watch of its own.
func (w *workload) seeDefinition() (*definition.Seen, kindwatch.State) {
	key := types.NamespacedName{Name: definition.Name}
	// The state is read before what it is about, so that what comes between is one event more, and never a definition that
	// is missed.
	state, _ := w.watcher.State(record.OwnedDefinitionKind)
	crd, err := w.watcher.Get(record.OwnedDefinitionKind, key)
	switch {
	case state != kindwatch.StateSynced:
		return nil, state
	case err == nil:
		w.watcher.Release(ownerForeign)
		seen := definition.SeenIn(crd)
		return &seen, state
	case !apierrors.IsNotFound(err):
		return nil, kindwatch.StateSyncing
	}
	w.watcher.Set(ownerForeign, record.ForeignDefinitionKind)
	state, _ = w.watcher.State(record.ForeignDefinitionKind)
	entry, err := w.watcher.Entry(record.ForeignDefinitionKind, key)
	rec, _ := entry.Record.(*record.Definition)
	switch {
	case state != kindwatch.StateSynced || apierrors.IsNotFound(err):
		return nil, state
	case err != nil || rec == nil:
		return nil, kindwatch.StateSyncing
	}
	return rec.Seen, state
}

// enable has the Applications of a cluster looked after.
func (r *reconciler) enable(w *workload) {
	if w.setMode(modeEnabled) {
		// What is seen from now on counts.
		r.ifCurrent(w, func() { r.rollup.Engaged(w.name) })
		w.watcher.Set(ownerFixed, record.OwnedDefinitionKind, record.ApplicationKind)
		defer func() { w.wakeLater(w.keys()...) }()
	}
	switch state, _ := w.watcher.State(record.ApplicationKind); state {
	case kindwatch.StateSynced:
		r.sumUp(w)
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
		// That it is another one is an event.
	default:
		r.unwatched(w, fleetv1alpha1.ReasonNotServed, stateProblem(state, record.ApplicationKind.GroupVersionKind).Message)
	}
}

// sumUp tells the hub that all Applications of a cluster are known. Of one that nobody has looked at yet counts what it
// says of itself, from before. Those that are as they were when nobody looked are no event, so they are tracked here.
func (r *reconciler) sumUp(w *workload) {
	if r.rollup.IsComplete(w.name) {
		return
	}
	entries, err := w.watcher.Entries(record.ApplicationKind)
	if err != nil {
		return
	}
	for i := range entries {
		if app := record.ApplicationIn(&entries[i]); app != nil {
			key, s := entries[i].Key, appstatus.SummaryOf(app)
			w.track(key, app)
			r.ifCurrent(w, func() { r.rollup.Offer(w.name, key, s) })
		}
	}
	r.ifCurrent(w, func() { r.rollup.Synced(w.name) })
}

// idle stops looking after the Applications of a cluster.
func (w *workload) idle() {
	if w.setMode(modeIdle) {
		w.watcher.Set(ownerFixed, record.OwnedDefinitionKind)
		for _, key := range w.keys() {
			w.untrack(key)
		}
	}
}

// unwatched tells the hub that nobody looks at the Applications of a cluster, and why.
func (r *reconciler) unwatched(w *workload, reason, message string) {
	r.ifCurrent(w, func() {
		r.metrics.forgetCluster(w.name)
		r.rollup.Unwatched(w.name, condition.Problem{Reason: reason, Message: message})
	})
}
