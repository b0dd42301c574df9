// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// resyncInterval is the requeue delay of an object whose dependencies are watched. It is jittered.
const resyncInterval = 10 * time.Minute

// reconcileObject resolves the references of one object.
func (r *reconciler) reconcileObject(ctx context.Context, w *workload, req Request) (reconcile.Result, error) {
	rules, tenancy, marked := w.rules(req.Kind)
	entry, err := w.watcher.Entry(req.Kind, req.NamespacedName)
	switch {
	case rules == nil:
		r.forget(w, req)
		return reconcile.Result{}, nil
	case errors.Is(err, kindwatch.ErrNotSynced), errors.Is(err, kindwatch.ErrNotWatched):
		// A new request follows once the kind is watched and synced.
		return reconcile.Result{}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, err
	case err != nil:
		r.forget(w, req)
		return reconcile.Result{}, nil //nolint:nilerr // Not to be there, or to have no references, is no error.
	}
	obj, isSettled, err := decodeEntry(req.Kind, entry)
	if err != nil {
		return reconcile.Result{}, err
	}
	if isSettled {
		_, _ = w.depend(req, 0, nil)
		r.whileLookedAfter(w, req.Kind, func() { r.metrics.object(req, commonv1alpha1.ReasonResolved) })
		r.emitChange(w, req, obj, commonv1alpha1.ReasonResolved, newCondition(0, outcome{}))
		return reconcile.Result{}, nil
	}
	refs, err := references.Parse(obj.Object)
	if err != nil {
		_, _ = w.depend(req, 0, nil)
		failed := &references.Error{Reason: commonv1alpha1.ReasonInvalidReference, Cause: err}
		o := outcome{failed: failed}
		shows, err := r.report(ctx, w, req, rules, obj, o)
		if err != nil || shows {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: condition.SlowRetry()}, nil
	}
	return r.resolve(ctx, w, req, resolution{rules: rules, tenancy: tenancy, marked: marked, obj: obj, refs: refs})
}

// forget drops an object that is gone, or no longer managed.
func (r *reconciler) forget(w *workload, req Request) {
	if w.forget(req) {
		r.metrics.forget(req)
	}
}

// resolution is everything needed to resolve the references of one object.
type resolution struct {
	rules   *declared
	tenancy references.Tenancy
	marked  marks
	obj     *unstructured.Unstructured
	refs    []commonv1alpha1.GenericReference
}

func (r *reconciler) resolve(ctx context.Context, w *workload, req Request, s resolution) (reconcile.Result, error) {
	grants := references.NewReferenceGrants(w.mapper, w.reader)
	s.tenancy.Grants = grants
	since := w.changes() // Before anything is read.
	result, err := r.resolver.Resolve(ctx, references.Request{
		Object: s.obj, References: s.refs, Reader: w.reader, Mapper: w.mapper, Tenancy: s.tenancy,
		Schema: s.rules.schema, Marked: s.marked.in,
	})
	o := outcome{missing: result.Missing}
	if err != nil && !errors.As(err, &o.failed) {
		return reconcile.Result{}, err
	}
	others, soon := w.others(ctx, result, grants)
	covered, cycle := w.depend(req, since, result.Sources, others...)
	if result.Selected {
		covered.all = false
		covered.why = cmp.Or(covered.why, "objects are selected by labels")
	}
	o.unwatched = covered.why
	obj := s.obj
	switch {
	case cycle != nil:
		o.failed = cycle
	case len(result.Filled) > 0:
		written, failed, err := r.apply(ctx, w, req, s, result)
		if err != nil {
			if apierrors.IsConflict(err) {
				// The watch shows the new state.
				return reconcile.Result{RequeueAfter: condition.Soon}, nil
			}
			o.failed = &references.Error{Index: -1, Reason: commonv1alpha1.ReasonUnavailable, Cause: err}
			_, _ = r.report(ctx, w, req, s.rules, obj, o) // If that fails as well, it is tried again with the apply.
			return reconcile.Result{}, err
		}
		if failed != nil {
			o.failed = failed
		}
		if written != nil {
			obj = written
		}
	}
	shows, err := r.report(ctx, w, req, s.rules, obj, o)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !shows {
		return reconcile.Result{RequeueAfter: condition.SlowRetry()}, nil
	}
	return reconcile.Result{RequeueAfter: again(o, covered.all, soon)}, nil
}

// again is the requeue delay of an object, depending on whether everything that it waits for is watched, or will be
// served in a moment.
func again(o outcome, all, soon bool) time.Duration {
	switch {
	case soon:
		return wait.Jitter(condition.Soon, 0.5)
	case o.failed == nil && len(o.missing) == 0 && all:
		return 0
	case all && (o.failed == nil || isWatchedFor(o.failed.Reason)):
		return wait.Jitter(resyncInterval, 0.5)
	case o.failed != nil && (o.failed.Reason == commonv1alpha1.ReasonInvalidReference || o.failed.Reason == commonv1alpha1.ReasonCycle):
		// Only a change of the object helps.
		return wait.Jitter(resyncInterval, 0.5)
	}
	return condition.SlowRetry()
}

// isWatchedFor reports whether an event ends a failure: of the source, of its definition, of a grant, or of the class.
func isWatchedFor(reason string) bool {
	switch reason {
	case commonv1alpha1.ReasonSourceNotFound, commonv1alpha1.ReasonFieldNotFound, commonv1alpha1.ReasonNotReady, commonv1alpha1.ReasonAmbiguous,
		commonv1alpha1.ReasonKindNotServed, commonv1alpha1.ReasonNotPermitted:
		return true
	}
	return false
}

// apply writes the filled-in fields. It returns the resulting object, and why not all are written.
func (r *reconciler) apply(
	ctx context.Context, w *workload, req Request, s resolution, result references.Result,
) (*unstructured.Unstructured, *references.Error, error) {
	live, err := w.live(ctx, s.obj)
	if apierrors.IsForbidden(err) {
		return nil, &references.Error{Index: -1, Reason: commonv1alpha1.ReasonForbidden, Cause: err}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	result, contested := references.Uncontested(live, result, s.rules.schema)
	if len(result.Filled) == 0 {
		return nil, contested, nil
	}
	cluster, _ := r.fleet.Lookup(w.name)
	manager := cluster.Hub.FieldManager(references.FieldManager)
	desired, err := references.ApplyConfiguration(live, result, manager, s.rules.schema)
	if err != nil {
		return nil, nil, err
	}
	err = apply.Update{Client: w.client, Manager: manager}.Apply(ctx, desired, live)
	rejected := references.Rejected(err, result)
	switch {
	case rejected != nil:
		return nil, rejected, nil
	case apierrors.IsForbidden(err):
		return nil, &references.Error{Index: -1, Reason: commonv1alpha1.ReasonForbidden, Cause: references.WithoutSecrets(err, result)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cannot apply the resolved values to %s: %w", req, references.WithoutSecrets(err, result))
	}
	if desired.GetUID() != s.obj.GetUID() {
		return nil, nil, fmt.Errorf("cluster %q answered with another object than %s", w.name, req)
	}
	r.whileLookedAfter(w, req.Kind, func() { r.metrics.filled(w.name, len(result.Filled)) })
	w.watcher.Observe(req.Kind, req.NamespacedName, desired)
	return desired, contested, nil
}

// live returns an object with its managedFields, which the watch drops. If it has changed since, the error is a
// conflict.
func (w *workload) live(ctx context.Context, known *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(known.GroupVersionKind())
	err := w.reader.Get(ctx, client.ObjectKeyFromObject(known), live)
	if apierrors.IsNotFound(err) || err == nil && (live.GetUID() != known.GetUID() || live.GetResourceVersion() != known.GetResourceVersion()) {
		return nil, apierrors.NewConflict(schema.GroupResource{}, known.GetName(), errors.New("it has changed"))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get %s %q: %w", known.GetKind(), client.ObjectKeyFromObject(known), err)
	}
	return live, nil
}

// others are the watches, beside the sources, that can change a result: the grants in foreign namespaces, and the
// definitions of what is not served. soon reports whether one of these has just changed, so that it may be served in a
// moment.
func (w *workload) others(ctx context.Context, result references.Result, g *references.ReferenceGrants) (watches []kindwatch.Kind, soon bool) {
	unserved := slices.Clone(result.Unserved)
	if len(result.Owners) > 0 {
		mapping, err := g.Kind(ctx)
		if meta.IsNoMatchError(err) {
			unserved = append(unserved, references.ReferenceGrantResource.GroupResource())
		}
		for _, namespace := range result.Owners {
			if err == nil {
				watches = append(watches, watchOfGrants(mapping, namespace))
			}
		}
	}
	for _, gr := range unserved {
		if gr.Group == "" {
			continue // The core group has no definitions.
		}
		watches = append(watches, watchOfDefinition(gr))
		soon = soon || w.mapper.isChanging(gr.Group)
	}
	return watches, soon
}
