// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/references"
)

// report reports the outcome: by the condition, if the status has conditions, and by an event if it is news. Without a
// status subresource there is only the event: each write of a condition would make a new generation to report. So it is
// while the API server refuses the condition, for example because of an admission policy of the cluster's owner.
func (r *reconciler) report(ctx context.Context, s *scope, obj *unstructured.Unstructured, o outcome) (reconcile.Result, error) {
	c := newCondition(obj.GetGeneration(), o)
	shown, _ := condition.Find(obj, commonv1alpha1.ConditionReferencesResolved)
	// Before the condition, which may fail: what is recorded keeps two objects of a cycle from waking each other up.
	r.emitChange(s, shown.Reason, c)
	again := o.again()
	if s.rules.schema.HasConditions() && s.rules.kind.StatusSubresource {
		switch err := r.writeCondition(ctx, s, obj, c); {
		case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
			again = condition.SlowRetry()
		case err != nil:
			return reconcile.Result{}, err
		}
	}
	if err := o.retried(); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// emitChange records the reason of an object's condition, and emits an event if it is news. shown is the reason of the
// previous condition: after a start, it is what was last reported.
func (r *reconciler) emitChange(s *scope, shown string, c metav1.Condition) {
	before := cmp.Or(s.noteReason(s.req, c.Reason), shown)
	if before == c.Reason || before == "" && c.Status == metav1.ConditionTrue {
		return
	}
	kind := corev1.EventTypeWarning
	if c.Status == metav1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	s.recorder.Eventf(s.obj, nil, kind, c.Reason, "ResolveReferences", "%s", c.Message)
}

// writeCondition writes the condition if it differs. A merge patch replaces lists as a whole, so it is valid only for
// the observed state of the object.
func (r *reconciler) writeCondition(ctx context.Context, s *scope, obj *unstructured.Unstructured, c metav1.Condition) error {
	conditions, changed := withCondition(obj, c, metav1.NewTime(r.clock.Now()))
	if !changed {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": obj.GetUID(), "resourceVersion": obj.GetResourceVersion()},
		"status":   map[string]any{"conditions": conditions},
	})
	if err != nil {
		return fmt.Errorf("cannot create a patch of the condition: %w", err)
	}
	cluster, _ := r.fleet.Lookup(s.name)
	owner := client.FieldOwner(cluster.Hub.FieldManager(references.FieldManager + "-status"))
	after := &unstructured.Unstructured{}
	after.SetGroupVersionKind(s.req.Kind.GroupVersionKind)
	after.SetNamespace(s.req.Namespace)
	after.SetName(s.req.Name)
	raw := client.RawPatch(types.MergePatchType, patch)
	err = s.client.Status().Patch(ctx, after, raw, owner)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot write the condition of %s: %w", s.req, err)
	}
	if err == nil && after.GetUID() == obj.GetUID() {
		s.watcher.Observe(s.req.Kind, s.req.NamespacedName, after)
	}
	return nil
}
