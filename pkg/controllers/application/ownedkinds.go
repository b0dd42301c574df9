// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// A forgotten owner reference would delete an object that was taken out of its Application. So the status lists the
// kinds of owned objects: from before the first reference of a kind is written until the last one is gone, regardless
// of the spec, the rights, the number of components and restarts of the manager.

// formerKinds are the kinds of possibly owned objects that the spec no longer names.
func formerKinds(app *appsv1alpha1.Application) map[schema.GroupVersionKind]struct{} {
	out := map[schema.GroupVersionKind]struct{}{}
	named := workload.Kinds(app)
	add := func(gvk schema.GroupVersionKind) {
		if _, ok := named[gvk]; !ok && gvk.Version != "" && gvk.Kind != "" {
			out[gvk] = struct{}{}
		}
	}
	for _, k := range app.Status.OwnedKinds {
		add(schema.GroupVersionKind(k))
	}
	if len(app.Status.OwnedKinds) > 0 || app.Status.ObservedGeneration == app.Generation {
		return out
	}
	// An earlier version listed no kinds. It listed up to 64 components.
	for _, c := range app.Status.Components {
		if c.Installed == corev1.ConditionTrue {
			add(schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind})
		}
	}
	return out
}

// ownedKinds are the kinds of objects that the Application owns, or will own after adoption. For a kind that cannot be
// observed, the status decides.
func (f findings) ownedKinds() []metav1.GroupVersionKind {
	before := sets.New(f.app.Status.OwnedKinds...)
	adopted := sets.New[schema.GroupVersionKind]()
	for _, o := range f.selection.adopt {
		if f.refused(o) == nil {
			adopted.Insert(o.kind.GroupVersionKind)
		}
	}
	released := sets.New[schema.GroupVersionKind]()
	for _, o := range f.selection.leaving {
		released.Insert(o.kind.GroupVersionKind)
	}
	owned := func(k seenKind) bool {
		switch {
		case k.Unseen != nil:
			return before.Has(metav1.GroupVersionKind(k.GVK)) && k.Unseen.Reason != appsv1alpha1.ReasonClusterScoped
		case k.Leaving:
			return released.Has(k.GVK)
		}
		return adopted.Has(k.GVK) || slices.ContainsFunc(k.objects, func(o object) bool {
			_, ours := o.OwnedBy(f.app.UID)
			_, written := f.tracked.Patched[o.entry.UID]
			return ours || written
		})
	}
	var out []metav1.GroupVersionKind
	// Kinds in the spec are known from there as well, so they are left out first if there are too many.
	for _, leaving := range []bool{true, false} {
		for _, k := range f.kinds {
			if k.Leaving == leaving && owned(k) && len(out) < appsv1alpha1.MaxOwnedKinds {
				out = append(out, metav1.GroupVersionKind(k.GVK))
			}
		}
	}
	slices.SortFunc(out, func(a, b metav1.GroupVersionKind) int {
		return byText(schema.GroupVersionKind(a), schema.GroupVersionKind(b))
	})
	return out
}

// note writes the status, with the kinds of the objects to adopt, before they are adopted. If the kinds cannot be
// written, nothing is adopted. A status that says that an object cannot be adopted, or watched, is left to the report
// that follows: only the attempt shows whether that is still so.
func (f findings) note(ctx context.Context, view healthcheck.View) (findings, error) {
	if len(f.selection.adopt) == 0 || f.superseded() {
		return f, nil
	}
	o := f.observation(view)
	whole, _ := f.settle(&o)
	refused := meta.IsStatusConditionFalse(f.app.Status.Conditions, appsv1alpha1.ConditionComponentsWatched)
	written, err := f.update(ctx, o, whole && !refused)
	if apierrors.IsInvalid(err) { // The definition of another version may have fewer fields.
		written, err = f.update(ctx, o, false)
	}
	if err == nil {
		f.scope = written
	}
	if !sets.New(f.app.Status.OwnedKinds...).HasAll(o.OwnedKinds...) {
		f.selection.adopt = nil
		if err == nil {
			err = condition.PendingError{} // The Application is gone, which the watch will show.
		}
	}
	return f, err
}
