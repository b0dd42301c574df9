// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// DefaultWithdrawalGrace is how long a definition is closed before it is deleted. API servers watch definitions, and
// observe a change within seconds.
const DefaultWithdrawalGrace = time.Minute

// withdraw takes the next step in removing a definition that is not offered. A right that is missing for it is
// reported: without a word, the definition would stay closed for ever.
func (r *Reconciler) withdraw(
	ctx context.Context, w *index.Cluster, req mcreconcile.Request, kind kindwatch.Kind, current *unstructured.Unstructured,
) error {
	claims, err := w.Watcher.List(kind)
	if state, _ := w.Watcher.State(kind); state == kindwatch.StateForbidden {
		return stays(fleetv1alpha1.ReasonClaimsForbidden, "list and watch its claims")
	}
	if !r.Hub.KnowsPublications() || err != nil {
		return condition.PendingError{} // What is not known yet makes a new request when it is.
	}
	seen, marked := current.GetAnnotations()[WithdrawnAnnotation]
	if len(claims) > 0 && !marked {
		return condition.PendingError{} // Deleting the last one makes a new request.
	}
	if at, err := time.Parse(time.RFC3339, seen); err == nil && len(claims) == 0 {
		if left := r.graceLeft(at); left > 0 {
			return condition.PendingError{After: left}
		}
	}
	return r.close(ctx, w, req, marked)
}

// stays is the problem that a definition that is not offered cannot be removed.
func stays(why, right string) *condition.Error {
	return &condition.Error{
		Reason:  why,
		Message: "The hub does not offer the kind to this cluster any more, and its definition stays: Masthead lacks the right to " + right + ".",
	}
}

// close makes a definition without objects reject new ones, and deletes it after the grace period. A definition that
// has objects after all is opened again.
func (r *Reconciler) close(ctx context.Context, w *index.Cluster, req mcreconcile.Request, marked bool) error {
	crd, err := r.get(ctx, w.Reader, req.Name)
	if err != nil || !IsOurs(crd, w.Owner()) {
		return client.IgnoreNotFound(err)
	}
	var again error = condition.PendingError{After: condition.SlowRetry()}
	empty, err := r.hasNoObjects(ctx, w, crd)
	if apierrors.IsForbidden(err) {
		again, err = stays(fleetv1alpha1.ReasonClaimsForbidden, "list its claims").RetriedAfter(condition.SlowRetry()), nil
	}
	if err != nil {
		return err
	}
	since, closed := ClosedSince(crd)
	switch {
	case !empty && marked:
		return errors.Join(again, r.rewrite(ctx, w, Opened(crd)))
	case !empty:
		return again
	case !closed:
		err := write(ctx, w, ClosedDefinition(crd, r.Clock.Now()))
		if apierrors.IsForbidden(err) {
			return stays(fleetv1alpha1.ReasonDefinitionForbidden, "update it").RetriedAfter(condition.SlowRetry())
		}
		if err != nil {
			return err
		}
		return condition.PendingError{After: r.Grace}
	}
	if left := r.graceLeft(since); left > 0 {
		return condition.PendingError{After: left}
	}
	return r.remove(ctx, w, req, crd)
}

// remove deletes a definition, if it is unchanged since it was read.
func (r *Reconciler) remove(ctx context.Context, w *index.Cluster, req mcreconcile.Request, crd *unstructured.Unstructured) error {
	err := w.Client.Delete(ctx, crd, client.Preconditions(install.Unchanged(crd)))
	switch {
	case r.Users.Excuses(req.ClusterName, err, r.Clock.Now()):
		return condition.PendingError{After: condition.Soon}
	case apierrors.IsForbidden(err):
		return stays(fleetv1alpha1.ReasonDefinitionForbidden, "delete it").RetriedAfter(condition.SlowRetry())
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("cannot delete CustomResourceDefinition %q in cluster %q: %w", req.Name, req.ClusterName, err)
	}
	log.FromContext(ctx).Info("Removed a definition that the hub does not offer any more, and that had no objects")
	return nil
}

// graceLeft returns how much longer a definition must stay closed. A time in the future is not ours, or comes from
// clock skew: the result is at most one grace period.
func (r *Reconciler) graceLeft(since time.Time) time.Duration {
	return min(since.Add(r.Grace).Sub(r.Clock.Now()), r.Grace)
}

// hasNoObjects reports whether an API server says that a definition has no objects. A server that serves no version of
// it proves nothing.
func (r *Reconciler) hasNoObjects(ctx context.Context, w *index.Cluster, crd *unstructured.Unstructured) (bool, error) {
	kind, ok := install.ServedKind(crd)
	if !ok {
		return false, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := w.Reader.List(ctx, list, client.Limit(1))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot list %s in cluster %q: %w", kind, w.Name, err)
	}
	return len(list.Items) == 0 && list.GetContinue() == "", nil
}

// reopen opens a closed definition that stays because its cluster's agent is disabled or its class is missing.
func (r *Reconciler) reopen(ctx context.Context, w *index.Cluster, req mcreconcile.Request) (reconcile.Result, error) {
	crd, err := r.get(ctx, w.Reader, req.Name)
	if err != nil || !isMarked(crd, w.Owner()) {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// A successful write is an event; a refused one is not.
	return reconcile.Result{RequeueAfter: condition.SlowRetry()}, r.rewrite(ctx, w, Opened(crd))
}

// isMarked reports whether a definition of ours says that it was closed. Its metadata suffice.
func isMarked(crd *unstructured.Unstructured, owner hubidentity.Owner) bool {
	_, marked := crd.GetAnnotations()[WithdrawnAnnotation]
	return marked && IsOurs(crd, owner)
}

// rewrite writes a changed definition over its original. A refusal by the cluster is not an error.
func (r *Reconciler) rewrite(ctx context.Context, w *index.Cluster, crd *unstructured.Unstructured) error {
	err := write(ctx, w, crd)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

func write(ctx context.Context, w *index.Cluster, crd *unstructured.Unstructured) error {
	if err := w.Client.Update(ctx, crd, w.FieldOwner()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write CustomResourceDefinition %q in cluster %q: %w", crd.GetName(), w.Name, err)
	}
	return nil
}
