// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
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
		p.Succeed(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflected, "The objects of Cluster API match what was observed")
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
		if o.Pool != "" && isNameTaken(err) {
			p.Skip(o)
			continue
		}
		if err != nil {
			return err
		}
		if !p.Skipped[o.Pool] {
			p.Refer(o.Object)
		}
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
	if err != nil {
		return err
	}
	if there == nil {
		there = want.DeepCopy()
		err = r.create(ctx, there)
	} else {
		there, err = r.update(ctx, there, want)
	}
	switch {
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && !isRights(err):
		return r.refused(ctx, p, o, err)
	case err != nil:
		return err
	}
	return r.updateStatus(ctx, there, o.Status)
}

// refused handles the API server's refusal of a reflection. That of a pool, some of whose fields the provider's webhook
// makes immutable, is deleted and recreated by the next pass; nothing depends on it. Others are reported.
func (r *Reconciler) refused(ctx context.Context, p *scope.Scope, o reflection.Object, refusal error) error {
	p.RequeueSoon(scope.Resync)
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(o.Object.GroupVersionKind())
	err := r.live.Get(ctx, client.ObjectKeyFromObject(o.Object), there)
	if o.Role == reflection.RoleInfraPool && apierrors.IsInvalid(refusal) && err == nil && p.IsOurs(there) {
		p.RequeueSoon(scope.Retry)
		if err := r.removeReflection(ctx, there); err != nil {
			return err
		}
	}
	return scope.Stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "The hub refuses %s %q: %s",
		o.Object.GetKind(), o.Object.GetName(), refusal)
}

// deleteForMoveAnnotation is the one with which clusterctl move announces that it deletes an object.
const deleteForMoveAnnotation = "clusterctl.cluster.x-k8s.io/delete-for-move"

// removeReflection deletes a reflection, for which the admission policies require an annotation.
func (h *hubObjects) removeReflection(ctx context.Context, o *unstructured.Unstructured) error {
	if !o.GetDeletionTimestamp().IsZero() {
		return nil
	}
	marks := map[string]string{takeover.AllowUnimportAnnotation: o.GetLabels()[fleetv1alpha1.ImportUIDLabel]}
	if o.GetKind() == "AzureManagedMachinePool" {
		// Without it, the provider's webhook refuses to delete the last pool in System mode before the Cluster.
		marks[deleteForMoveAnnotation] = ""
	}
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

// isRights reports whether a refusal is the authorizer's, and not a policy's or a webhook's.
func isRights(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details == nil {
		return false
	}
	return !slices.ContainsFunc([]string{"denied request", "denied the request"}, func(s string) bool { return strings.Contains(err.Error(), s) })
}
