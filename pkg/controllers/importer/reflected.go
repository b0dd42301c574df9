// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// isProviders reports whether objects of a role belong to Cluster API's providers. These are created before the
// Cluster: Cluster API core can then only find objects that are annotated.
func isProviders(role reflection.Role) bool {
	return role != reflection.RoleCluster && role != reflection.RoleMachinePool
}

// reflectProvider creates the objects of the Cluster API provider.
func (r *Reconciler) reflectProvider(ctx context.Context, p *scope.Scope) error {
	reflected, err := reflection.Reflect(p.Wanted, *p.Facts, p.Schemas)
	if err != nil {
		return scope.Stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "The cluster cannot be reflected: %s", err)
	}
	p.Reflection = reflected
	for _, o := range reflected.Objects {
		key := scope.NewObjectKey(o.Object)
		if last, ok := r.outcomes.get(p.Key())[key]; ok {
			p.Outcomes[key] = last
		}
	}
	p.Lossy = append(p.Lossy, reflected.Lossy...)
	return r.reflect(ctx, p, isProviders)
}

// reflectCluster creates the Cluster, and then its MachinePools.
func (r *Reconciler) reflectCluster(ctx context.Context, p *scope.Scope) error {
	if err := r.reflect(ctx, p, func(role reflection.Role) bool { return !isProviders(role) }); err != nil {
		return err
	}
	if !p.Frozen {
		p.Reflected = true
		message := "The objects of Cluster API match what was observed"
		for _, o := range p.Outcomes {
			if o.Refusal != "" {
				message = "The hub refuses a part of what was observed, which is listed as lossy"
			}
		}
		p.Succeed(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflected, message)
	}
	return nil
}

// reflect creates the objects of the reflection whose role is selected, in their order.
func (r *Reconciler) reflect(ctx context.Context, p *scope.Scope, selected func(reflection.Role) bool) error {
	for _, o := range p.Reflection.Objects {
		if !selected(o.Role) {
			continue
		}
		p.WantedReflected[scope.NewObjectKey(o.Object)] = true
		if p.Frozen || p.Skipped[o.Pool] {
			continue
		}
		err := r.reflectObject(ctx, p, o)
		if errors.Is(err, errSkipped) {
			continue
		}
		if o.Pool != "" && isNameTaken(err) {
			p.Skip(o.Pool, o.Object, "There is an object of this name that was not created by the import; it is left alone")
			continue
		}
		if err != nil {
			return err
		}
		p.Refer(o.Object)
	}
	return nil
}

func (r *Reconciler) reflectObject(ctx context.Context, p *scope.Scope, o reflection.Object) error {
	want := o.Object.DeepCopy()
	if o.Role == reflection.RoleCluster && p.Wanted.StrictPause {
		annotate(want, fleetv1alpha1.ImportPausedAnnotation, string(p.Import.UID))
	}
	want, err := stamped(want)
	if err != nil {
		return err
	}
	there, err := r.find(ctx, p, want)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	there, err = r.writeDraft(ctx, draft{p: p, role: o.Role, pool: o.Pool, full: want, there: there})
	if err != nil {
		return err
	}
	return r.updateStatus(ctx, there, o.Status)
}

// removeReflection deletes a reflection, for which the admission policies require an annotation.
func (h *hubObjects) removeReflection(ctx context.Context, o *unstructured.Unstructured) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	marks := map[string]string{takeover.AllowUnimportAnnotation: o.GetLabels()[fleetv1alpha1.ImportUIDLabel]}
	maps.Copy(marks, reflection.RemovalAnnotations(o))
	if marked := labels.Merge(o.GetAnnotations(), marks); !maps.Equal(marked, o.GetAnnotations()) {
		if err := h.mergePatch(ctx, o, map[string]any{"metadata": map[string]any{"annotations": marks}}); err != nil {
			return err
		}
	}
	return h.remove(ctx, o)
}

// prune removes the reflections and managed resources of pools and subnets that no longer exist.
func (r *Reconciler) prune(ctx context.Context, p *scope.Scope) error {
	if p.Frozen {
		return nil
	}
	for _, gvk := range slices.Backward(reflection.ReflectedKinds(p.Wanted.Cloud)) {
		list := unstructuredList(gvk)
		if err := r.owned.List(ctx, list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(p.Import.UID)}); err != nil {
			return fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
		}
		own := r.own(p, list.Items)
		for i := range own {
			if !p.WantedReflected[scope.NewObjectKey(&own[i])] {
				if err := r.takeBack(ctx, p, &own[i]); err != nil {
					return err
				}
			}
		}
	}
	for _, m := range p.Managed {
		if p.WantedManaged[scope.NewObjectKey(m)] || !m.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := r.removeManaged(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes one reflection. Core removes its finalizer from a MachinePool only when that is not paused.
func (r *Reconciler) takeBack(ctx context.Context, p *scope.Scope, o *unstructured.Unstructured) error {
	if err := r.verifyCascade(ctx, p, o); err != nil {
		return err
	}
	if o.GetDeletionTimestamp().IsZero() {
		return r.removeReflection(ctx, o)
	}
	return r.unpause(ctx, o)
}

// own filters the objects that bear the import's label to those that the import created. Labels are copied, by people
// and by restoring a backup into another namespace. Such a copy can refer to real objects, so it is reported, and
// neither trusted nor deleted.
func (r *Reconciler) own(p *scope.Scope, labelled []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.DeleteFunc(labelled, func(o unstructured.Unstructured) bool {
		if ownership.MadeBy(&o, p.Wanted) {
			return false
		}
		if !p.Strangers[scope.NewObjectKey(&o)] {
			p.Strangers[scope.NewObjectKey(&o)] = true
			// Readers of events in this namespace do not learn the name of another one.
			r.recorder.Eventf(p.Import, nil, corev1.EventTypeWarning, fleetv1alpha1.ReasonNameTaken, "Import",
				"A %s has the label of this import, but was not created by it; it is left alone", o.GetKind())
		}
		return true
	})
}

// verifyCascade checks, before an object is deleted or core may finish its deletion, that what core deletes with it
// belongs to the import, or does not exist.
func (r *Reconciler) verifyCascade(ctx context.Context, p *scope.Scope, o *unstructured.Unstructured) error {
	nodes, _, err := unstructured.NestedSlice(o.Object, "status", "nodeRefs")
	if (err != nil || len(nodes) > 0) && len(ownership.Cascades(o.GroupVersionKind().GroupKind())) > 0 {
		return scope.Stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused,
			"%s %q names Nodes in its status, which Cluster API core would delete; it is not deleted", o.GetKind(), o.GetName())
	}
	for _, field := range ownership.Cascades(o.GroupVersionKind().GroupKind()) {
		ref, _, err := unstructured.NestedStringMap(o.Object, field...)
		if err == nil && len(ref) == 0 {
			continue
		}
		own, err := r.refersToOwn(ctx, p, o.GetNamespace(), ref)
		if err != nil {
			return err
		}
		if !own {
			return scope.Stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused,
				"%s %q refers to %s %q, which was not created by this import; it is not deleted", o.GetKind(), o.GetName(), ref["kind"], ref["name"])
		}
	}
	return nil
}

// refersToOwn reports whether a reference is to an object of the import, or to a missing one of its kinds.
func (h *hubObjects) refersToOwn(ctx context.Context, p *scope.Scope, namespace string, ref map[string]string) (bool, error) {
	kinds := reflection.ReflectedKinds(p.Wanted.Cloud)
	kind := slices.IndexFunc(kinds, func(k schema.GroupVersionKind) bool {
		return k.GroupKind() == schema.GroupKind{Group: ref["apiGroup"], Kind: ref["kind"]}
	})
	if kind < 0 {
		return false, nil
	}
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(kinds[kind])
	err := h.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref["name"]}, there)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot get %s %q: %w", ref["kind"], ref["name"], err)
	}
	return ownership.MadeBy(there, p.Wanted), nil
}
