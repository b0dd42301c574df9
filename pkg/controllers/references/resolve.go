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

// scope is what the reconciliation of one object starts from.
type scope struct {
	*workload

	req     Request
	rules   *declared
	tenancy references.Tenancy
	marked  marks
	obj     *unstructured.Unstructured

	// settled says that the object's references are resolved, and that its status says so.
	settled bool
}

// newScope returns the scope of an object that is watched. The error is NotFound for one without references, and one of
// a kind that is not managed.
func (w *workload) newScope(req Request) (*scope, error) {
	s := &scope{workload: w, req: req}
	var known bool
	if s.rules, s.tenancy, s.marked, known = w.rules(req.Kind); !known {
		return nil, condition.PendingError{} // What is reported of the object is not forgotten yet.
	}
	if s.rules == nil {
		return nil, apierrors.NewNotFound(req.Kind.GroupResource(), req.Name)
	}
	entry, err := w.watcher.Entry(req.Kind, req.NamespacedName)
	if errors.Is(err, kindwatch.ErrNotSynced) || errors.Is(err, kindwatch.ErrNotWatched) {
		// A new request follows once the kind is watched and synced.
		return nil, condition.PendingError{}
	}
	if err != nil {
		return nil, err
	}
	s.obj, s.settled, err = decodeEntry(req.Kind, entry)
	return s, err
}

// reconcileObject resolves the references of one object.
func (r *reconciler) reconcileObject(ctx context.Context, w *workload, req Request) (reconcile.Result, error) {
	s, err := w.newScope(req)
	switch {
	case apierrors.IsNotFound(err):
		w.forget(req)
		return reconcile.Result{}, nil
	case err != nil:
		return condition.Result(err)
	case s.settled:
		_, _ = w.depend(req, 0, nil)
		r.emitChange(s, commonv1alpha1.ReasonResolved, newCondition(0, outcome{}))
		return reconcile.Result{}, nil
	}
	refs, err := references.Parse(s.obj.Object)
	if err != nil {
		_, _ = w.depend(req, 0, nil)
		failed := &references.Error{Reason: commonv1alpha1.ReasonInvalidReference, Cause: err}
		return r.report(ctx, s, s.obj, outcome{failed: failed, watched: true})
	}
	return r.resolve(ctx, s, refs)
}

// resolve finds the values of an object's references, writes them, and reports the outcome.
func (r *reconciler) resolve(ctx context.Context, s *scope, refs []commonv1alpha1.GenericReference) (reconcile.Result, error) {
	grants := references.NewReferenceGrants(s.mapper, s.reader)
	tenancy := s.tenancy
	tenancy.Grants = grants
	since := s.changes() // Before anything is read.
	result, err := r.resolver.Resolve(ctx, references.Request{
		Object: s.obj, References: refs, Reader: s.reader, Mapper: s.mapper, Tenancy: tenancy,
		Schema: s.rules.schema, Marked: s.marked.in,
	})
	o := outcome{missing: result.Missing}
	if err != nil && !errors.As(err, &o.failed) {
		return reconcile.Result{}, err
	}
	others, soon := s.others(ctx, result, grants)
	covered, cycle := s.depend(s.req, since, result.Sources, others...)
	if result.Selected {
		covered.all = false
		covered.why = cmp.Or(covered.why, "objects are selected by labels")
	}
	o.watched, o.unwatched, o.soon = covered.all, covered.why, soon
	obj := s.obj
	switch {
	case cycle != nil:
		o.failed = cycle
	case len(result.Filled) > 0:
		written, err := r.apply(ctx, s, result)
		if err != nil && !errors.As(err, &o.failed) {
			return condition.Result(err)
		}
		if written != nil {
			obj = written
		}
	}
	return r.report(ctx, s, obj, o)
}

// again is the requeue delay of an object, depending on whether everything that it waits for is watched, or will be
// served in a moment.
func (o outcome) again() time.Duration {
	switch {
	case o.soon:
		return wait.Jitter(condition.Soon, 0.5)
	case o.failed == nil && len(o.missing) == 0 && o.watched:
		return 0
	case o.watched && (o.failed == nil || isWatchedFor(o.failed.Reason)):
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

// apply writes the filled-in fields, and returns the resulting object. The error is a *references.Error for what is
// reported; with an object, it is about the fields that were not written.
func (r *reconciler) apply(ctx context.Context, s *scope, result references.Result) (*unstructured.Unstructured, error) {
	live, err := s.live(ctx, s.obj)
	if err != nil {
		return nil, notApplied(err, err)
	}
	result, contested := references.Uncontested(live, result, s.rules.schema)
	if len(result.Filled) == 0 {
		return nil, contested
	}
	cluster, _ := r.fleet.Lookup(s.name)
	manager := cluster.Hub.FieldManager(references.FieldManager)
	desired, err := references.ApplyConfiguration(live, result, manager, s.rules.schema)
	if err != nil {
		return nil, notApplied(err, err)
	}
	err = apply.Update{Client: s.client, Manager: manager}.Apply(ctx, desired, live)
	if rejected := references.Rejected(err, result); rejected != nil {
		return nil, rejected
	}
	if err != nil {
		return nil, notApplied(err, references.WithoutSecrets(err, result))
	}
	if desired.GetUID() != s.obj.GetUID() {
		err := fmt.Errorf("cluster %q answered with another object than %s", s.name, s.req)
		return nil, notApplied(err, err)
	}
	r.whileLookedAfter(s.workload, s.req.Kind, func() { r.metrics.filled(s.name, len(result.Filled)) })
	s.watcher.Observe(s.req.Kind, s.req.NamespacedName, desired)
	if contested != nil {
		return desired, contested
	}
	return desired, nil
}

// notApplied returns what an error while the values are written means; shown is the error without values of Secrets.
func notApplied(err, shown error) error {
	switch {
	case apierrors.IsConflict(err):
		// The watch shows the new state.
		return condition.PendingError{After: condition.Soon}
	case apierrors.IsForbidden(err):
		return &references.Error{Index: -1, Reason: commonv1alpha1.ReasonForbidden, Cause: shown}
	}
	return &references.Error{Index: -1, Reason: commonv1alpha1.ReasonUnavailable, Cause: shown}
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
