// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/references"
)

// conditionOf is what an outcome is for people.
func conditionOf(generation int64, o outcome) metav1.Condition {
	c := metav1.Condition{
		Type: commonv1alpha1.ConditionReferencesResolved, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason: references.ReasonResolved, Message: "All references are resolved",
	}
	if len(o.missing) > 0 {
		indices := make([]string, 0, len(o.missing))
		for _, m := range o.missing {
			indices = append(indices, fmt.Sprintf("spec.references[%d]", m.Index))
		}
		c.Message = "All required references are resolved; what these optional ones reference is missing: " + strings.Join(indices, ", ")
	}
	if o.failed == nil {
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, o.failed.Reason
	switch o.failed.Reason {
	case references.ReasonUnavailable:
		// What a request failed with differs from one to the next.
		c.Status, c.Message = metav1.ConditionUnknown, fmt.Sprintf("The API server did not answer about spec.references[%d]", o.failed.Index)
	case references.ReasonCycle:
		c.Message = capital(o.failed.Detail())
	default:
		c.Message = capital(o.failed.Error())
	}
	return c
}

func capital(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// shownCondition is the condition as an object shows it; nil if it does not.
func shownCondition(obj *unstructured.Unstructured) map[string]any {
	conditions, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && c["type"] == commonv1alpha1.ConditionReferencesResolved {
			return c
		}
	}
	return nil
}

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

// withCondition returns the conditions of an object with another one of ours, and whether they differ.
func withCondition(obj *unstructured.Unstructured, c metav1.Condition, now metav1.Time) ([]any, bool) {
	c.LastTransitionTime = now
	have, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	list, _ := have.([]any)
	out := make([]any, 0, len(list)+1)
	for _, entry := range list {
		before, ok := entry.(map[string]any)
		if !ok || before["type"] != c.Type {
			out = append(out, entry)
			continue
		}
		if before["status"] == string(c.Status) {
			if before["reason"] == c.Reason && before["message"] == c.Message && before["observedGeneration"] == c.ObservedGeneration {
				return nil, false
			}
			if since, ok := before["lastTransitionTime"].(string); ok {
				_ = c.LastTransitionTime.UnmarshalQueryParameter(since)
			}
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return nil, false
	}
	return append(out, content), true
}
