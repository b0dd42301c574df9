// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A definition that is not offered any more goes when no object of its kind is left. To delete a definition deletes its
// objects, so that one that is created while we look must not be lost: nothing in the API lets a definition be deleted on
// condition that it has no objects. So it is closed first: each version gets a rule that refuses every object. After a time in
// which every API server of the cluster has learnt of that, a live list that shows no object shows that there will be none,
// and the definition is deleted on condition that it is still the one that was closed. If there is an object after all, the
// definition is opened again and stays.

// WithdrawnAnnotation is set on a definition in a workload cluster that is closed, and says since when.
const WithdrawnAnnotation = "agent.masthead.dev/withdrawn-at"

// DefaultWithdrawalGrace is how long a definition is closed before it is deleted. API servers learn of a change of a
// definition by a watch, within seconds.
const DefaultWithdrawalGrace = time.Minute

// withdrawnMessage is what somebody reads who creates an object of a closed kind. It also marks our rule.
const withdrawnMessage = "the hub does not offer this kind to the cluster any more, and its definition is about to be removed"

// withdraw takes a definition that is not offered a step further on its way out of the cluster.
func (r *definitionReconciler) withdraw(
	ctx context.Context, w *workload, req mcreconcile.Request, kind kindwatch.Kind, current *unstructured.Unstructured,
) (reconcile.Result, error) {
	claims, err := w.watcher.List(kind)
	if _, known := r.hub.readPublications(); !known || err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // What is not known yet makes a new request when it is.
	}
	seen, marked := current.GetAnnotations()[WithdrawnAnnotation]
	if len(claims) > 0 && !marked {
		return reconcile.Result{}, nil // The end of the last one makes a new request.
	}
	if at, err := time.Parse(time.RFC3339, seen); err == nil && len(claims) == 0 {
		if left := r.graceLeft(at); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil
		}
	}
	return r.close(ctx, w, req, marked)
}

// close has a definition without objects refuse new ones, and removes it when it has for long enough. One that has objects
// after all is opened again.
func (r *definitionReconciler) close(ctx context.Context, w *workload, req mcreconcile.Request, marked bool) (reconcile.Result, error) {
	crd, err := r.get(ctx, w.reader, req.Name)
	if err != nil || crd == nil || !isOurs(crd, w.owner()) {
		return reconcile.Result{}, err
	}
	empty, err := r.hasNoObjects(ctx, w, crd)
	if err != nil {
		return reconcile.Result{}, err
	}
	since, closed := closedSince(crd)
	switch {
	case !empty && marked:
		return reconcile.Result{RequeueAfter: slowRetry()}, r.rewrite(ctx, w, opened(crd))
	case !empty:
		return reconcile.Result{RequeueAfter: slowRetry()}, nil
	case !closed:
		return reconcile.Result{RequeueAfter: r.grace}, r.rewrite(ctx, w, closedDefinition(crd, r.clock.Now()))
	}
	if left := r.graceLeft(since); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	return r.remove(ctx, w, req, crd)
}

// remove deletes a definition, if it is still the one that was looked at.
func (r *definitionReconciler) remove(
	ctx context.Context, w *workload, req mcreconcile.Request, crd *unstructured.Unstructured,
) (reconcile.Result, error) {
	uid, version := crd.GetUID(), crd.GetResourceVersion()
	err := w.client.Delete(ctx, crd, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case r.users.Excuses(req.ClusterName, err, r.clock.Now()):
		return reconcile.Result{RequeueAfter: soon}, nil
	case apierrors.IsForbidden(err):
		log.FromContext(ctx).V(1).Info("Cannot remove a definition that is not offered any more", "error", multicluster.BoundedText(err.Error()))
		return reconcile.Result{RequeueAfter: slowRetry()}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("cannot delete CustomResourceDefinition %q in cluster %q: %w", req.Name, req.ClusterName, err)
	}
	log.FromContext(ctx).Info("Removed a definition that the hub does not offer any more, and that had no objects")
	return reconcile.Result{}, nil
}

// graceLeft is how much longer a definition has to be closed. A time in the future is not ours, or the clock's: it is a
// grace from now at most.
func (r *definitionReconciler) graceLeft(since time.Time) time.Duration {
	return min(since.Add(r.grace).Sub(r.clock.Now()), r.grace)
}

// hasNoObjects is whether an API server says that there is no object of the kind of a definition. One that serves no version
// of it says nothing.
func (r *definitionReconciler) hasNoObjects(ctx context.Context, w *workload, crd *unstructured.Unstructured) (bool, error) {
	kind, ok := kindOfDefinition(crd)
	if !ok {
		return false, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := w.reader.List(ctx, list, client.Limit(1))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot list %s in cluster %q: %w", kind, w.name, err)
	}
	return len(list.Items) == 0 && list.GetContinue() == "", nil
}

// rewrite writes a definition over the one that it was made of.
func (r *definitionReconciler) rewrite(ctx context.Context, w *workload, crd *unstructured.Unstructured) error {
	err := w.client.Update(ctx, crd, w.fieldOwner())
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		return fmt.Errorf("cannot write CustomResourceDefinition %q in cluster %q: %w", crd.GetName(), w.name, err)
	}
	return nil
}

// closedSince is whether a definition is closed, and since when. One that only bears the annotation is not.
func closedSince(crd *unstructured.Unstructured) (time.Time, bool) {
	since, err := time.Parse(time.RFC3339, crd.GetAnnotations()[WithdrawnAnnotation])
	if err != nil {
		return time.Time{}, false
	}
	versions := versionsOf(crd)
	for _, v := range versions {
		if v, ok := v.(map[string]any); !ok || !hasClosingRule(v) {
			return time.Time{}, false
		}
	}
	return since, len(versions) > 0
}

const validationsField = "x-kubernetes-validations"

func hasClosingRule(version map[string]any) bool {
	rules, _, _ := unstructured.NestedSlice(version, "schema", "openAPIV3Schema", validationsField)
	return slices.ContainsFunc(rules, isClosingRule)
}

func isClosingRule(rule any) bool {
	r, ok := rule.(map[string]any)
	return ok && r["rule"] == "false" && r["message"] == withdrawnMessage
}

// closedDefinition is a definition that refuses every object. Those that there are can still be read.
func closedDefinition(crd *unstructured.Unstructured, now time.Time) *unstructured.Unstructured {
	out := opened(crd)
	annotations := out.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[WithdrawnAnnotation] = now.UTC().Format(time.RFC3339)
	out.SetAnnotations(annotations)
	editRules(out, func(rules []any) []any {
		return append(rules, map[string]any{"rule": "false", "message": withdrawnMessage})
	})
	return out
}

// opened is a definition without what closedDefinition added.
func opened(crd *unstructured.Unstructured) *unstructured.Unstructured {
	out := crd.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, WithdrawnAnnotation)
	out.SetAnnotations(annotations)
	editRules(out, func(rules []any) []any {
		var kept []any
		for _, rule := range rules {
			if !isClosingRule(rule) {
				kept = append(kept, rule)
			}
		}
		return kept
	})
	return out
}

// editRules changes the validation rules of every version of a definition.
func editRules(crd *unstructured.Unstructured, edit func([]any) []any) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok {
			continue
		}
		schema, ok, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if !ok {
			continue
		}
		rules, _ := schema[validationsField].([]any)
		if rules = edit(rules); len(rules) == 0 {
			delete(schema, validationsField)
		} else {
			schema[validationsField] = rules
		}
		_ = unstructured.SetNestedMap(version, schema, "schema", "openAPIV3Schema")
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// setUnoffered remembers that a definition is not offered, or not as it is in the cluster, so that the end of each of its objects is a reason to look at it.
func (w *workload) setUnoffered(crd string, unoffered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !unoffered {
		delete(w.unoffered, crd)
		return
	}
	if w.unoffered == nil {
		w.unoffered = map[string]struct{}{}
	}
	w.unoffered[crd] = struct{}{}
}

func (w *workload) isUnoffered(crd string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.unoffered[crd]
	return ok
}
