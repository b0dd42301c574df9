// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/references"
)

// report tells people what came of it: by the condition, if the status has conditions, and by an event if it is news.
// Without a status subresource there is the event alone: each write of a condition would make a new generation, of
// which to tell again. It returns whether the condition is as it should be: if the API server refuses it, which an
// admission policy of the cluster's owner can have it do, there is the event alone.
func (r *reconciler) report(
	ctx context.Context, w *workload, req Request, rules *declared, obj *unstructured.Unstructured, o outcome,
) (shows bool, err error) {
	c := conditionOf(obj.GetGeneration(), o)
	r.whileLookedAfter(w, req.Kind, func() { r.metrics.object(req, c.Reason) })
	shown, shows := shownCondition(obj), true
	if rules.schema.HasConditions() && rules.kind.StatusSubresource {
		err := r.writeCondition(ctx, w, req, obj, c)
		refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
		if err != nil && !refused {
			return false, err
		}
		shows = !refused
	}
	reason, _ := shown["reason"].(string)
	r.tell(w, req, obj, reason, c)
	return shows, nil
}

// tell notes what an object is told by its condition, and tells it by an event if that is news. shown is the reason of
// the condition before: after a start, the object says what it was told.
func (r *reconciler) tell(w *workload, req Request, obj *unstructured.Unstructured, shown string, c metav1.Condition) {
	before := w.tell(req, c.Reason)
	if before == "" {
		before = shown
	}
	if before == c.Reason || before == "" && c.Status == metav1.ConditionTrue {
		return
	}
	kind := corev1.EventTypeWarning
	if c.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	w.recorder.Eventf(obj, nil, kind, c.Reason, "ResolveReferences", "%s", c.Message)
}

// writeCondition writes the condition if it is another one. Lists are replaced whole by a merge patch, so it holds for
// the state of the object that was looked at only.
func (r *reconciler) writeCondition(
	ctx context.Context, w *workload, req Request, obj *unstructured.Unstructured, c metav1.Condition,
) error {
	conditions, changed := withCondition(obj, c, metav1.NewTime(r.clock.Now()))
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return fmt.Errorf("cannot make a patch of the condition: %w", err)
	}
	cluster, _ := r.fleet.Lookup(w.name)
	owner := client.FieldOwner(cluster.Hub.FieldManager(references.FieldManager + "-status"))
	after := &unstructured.Unstructured{}
	after.SetGroupVersionKind(req.Kind.GroupVersionKind)
	after.SetNamespace(req.Namespace)
	after.SetName(req.Name)
	raw := client.RawPatch(types.MergePatchType, patch)
	err = w.client.Status().Patch(ctx, after, raw, owner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the condition of %s: %w", req, err)
	}
	if err == nil && after.GetUID() == obj.GetUID() {
		w.watcher.Observe(req.Kind, req.NamespacedName, after)
	}
	return nil
}
