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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// isProviders reports whether objects of a role belong to Cluster API's providers. These are created before the
// Cluster: Cluster API core can then only find objects that are annotated.
func isProviders(role reflection.Role) bool {
	return role != reflection.RoleCluster && role != reflection.RoleMachinePool
}

// reflected is what is reflected of a cluster.
type reflected struct {
	objects  []reflection.Object
	schemas  reflection.Schemas
	mayWrite bool
	// skipped are the node pools that are not reflected, because a foreign object has one of their names, or the hub
	// refuses them. It grows while they are written, as outcomes do.
	skipped map[string]bool
	// outcomes are those of this pass, or of the last one that came to them.
	outcomes map[objectKey]outcome
}

// reflectProvider creates the objects of the Cluster API provider.
func (r *Reconciler) reflectProvider(ctx context.Context, s *scope, hub capabilities, obs observation) (reflected, result, error) {
	wanted, err := reflection.Reflect(s.wanted, *obs.facts, hub.schemas)
	if err != nil {
		return reflected{}, result{}, stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused, "The cluster cannot be reflected: %s", err)
	}
	made := reflected{
		objects: wanted.Objects, schemas: hub.schemas, mayWrite: obs.mayWrite, skipped: map[string]bool{}, outcomes: map[objectKey]outcome{},
	}
	for _, o := range made.objects {
		key := newObjectKey(o.Object)
		if last, ok := r.outcomes.get(s.key())[key]; ok {
			made.outcomes[key] = last
		}
	}
	res, err := r.reflect(ctx, s, made, isProviders)
	res.reflected, res.lossy = true, append(wanted.Lossy, res.lossy...)
	return made, res, err
}

// reflectCluster creates the Cluster, and then its MachinePools.
func (r *Reconciler) reflectCluster(ctx context.Context, s *scope, made reflected) (result, error) {
	res, err := r.reflect(ctx, s, made, func(role reflection.Role) bool { return !isProviders(role) })
	if res.complete = err == nil && made.mayWrite; res.complete {
		message := "The objects of Cluster API match what was observed"
		for _, o := range made.outcomes {
			if o.refusal != "" {
				message = "The hub refuses a part of what was observed, which is listed as lossy"
			}
		}
		res.succeed(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflected, message)
	}
	return res, err
}

// reflect creates the objects of the reflection whose role is selected, in their order. A node pool, one of whose
// objects cannot be written, is skipped: nothing depends on it, and it must not block the rest.
func (r *Reconciler) reflect(ctx context.Context, s *scope, made reflected, selected func(reflection.Role) bool) (res result, err error) {
	if !made.mayWrite {
		return res, nil
	}
	defer r.outcomes.set(s.key(), made.outcomes)
	for _, o := range made.objects {
		if !selected(o.Role) || made.skipped[o.Pool] {
			continue
		}
		written, err := r.reflectObject(ctx, s, made, o)
		res.add(written)
		if skipped, ok := errors.AsType[skippedError](err); ok {
			made.skipped[o.Pool] = true
			res.lossy = append(res.lossy, reflection.Lossy{
				Object: o.Object.GetKind() + "/" + o.Object.GetName(), Field: "metadata.name", Observed: o.Pool,
				Reason: "The node pool is not reflected. " + string(skipped),
			})
			continue
		}
		if err != nil {
			return res, err
		}
		res.refer(o.Object)
	}
	return res, nil
}

func (r *Reconciler) reflectObject(ctx context.Context, s *scope, made reflected, o reflection.Object) (res result, err error) {
	want := o.Object.DeepCopy()
	if o.Role == reflection.RoleCluster && s.wanted.StrictPause {
		annotate(want, fleetv1alpha1.ImportPausedAnnotation, string(s.imp.UID))
	}
	if want, err = stamped(want); err != nil {
		return res, err
	}
	there, err := r.find(ctx, s, want)
	if problem, ok := errors.AsType[*condition.Error](err); ok && o.Pool != "" && problem.Reason == fleetv1alpha1.ReasonNameTaken {
		return res, skippedError("There is an object of this name that was not created by the import; it is left alone")
	}
	if client.IgnoreNotFound(err) != nil {
		return res, err
	}
	there, err = r.writeDraft(ctx, draft{s: s, made: made, role: o.Role, pool: o.Pool, full: want, there: there, res: &res})
	if err != nil {
		return res, err
	}
	return res, r.updateStatus(ctx, there, o.Status)
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
func (r *Reconciler) prune(ctx context.Context, s *scope, obs observation, made reflected) error {
	if !made.mayWrite {
		return nil
	}
	wanted := map[objectKey]bool{}
	for _, o := range made.objects {
		wanted[newObjectKey(o.Object)] = true
	}
	for _, m := range obs.wanted {
		wanted[newObjectKey(m)] = true
	}
	for _, kind := range slices.Backward(reflection.ReflectedKinds(s.wanted.Cloud)) {
		list := unstructuredList(made.schemas.Kind(kind))
		if err := r.owned.List(ctx, list, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(s.imp.UID)}); err != nil {
			return fmt.Errorf("cannot list %s: %w", kind, err)
		}
		own := r.own(s, list.Items)
		for i := range own {
			if wanted[newObjectKey(&own[i])] {
				continue
			}
			if err := r.takeBack(ctx, s, &own[i]); err != nil {
				return err
			}
		}
	}
	for _, m := range obs.managed {
		if wanted[newObjectKey(m)] || !m.GetDeletionTimestamp().IsZero() {
			continue
		}
		if err := r.removeManaged(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// takeBack removes one reflection. Core removes its finalizer from a MachinePool only when that is not paused.
func (r *Reconciler) takeBack(ctx context.Context, s *scope, o *unstructured.Unstructured) error {
	if err := r.verifyCascade(ctx, s, o); err != nil {
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
func (r *Reconciler) own(s *scope, labelled []unstructured.Unstructured) []unstructured.Unstructured {
	return slices.DeleteFunc(labelled, func(o unstructured.Unstructured) bool {
		if ownership.MadeBy(&o, s.wanted) {
			return false
		}
		if !s.strangers[newObjectKey(&o)] {
			s.strangers[newObjectKey(&o)] = true
			// Readers of events in this namespace do not learn the name of another one.
			r.recorder.Eventf(s.imp, nil, corev1.EventTypeWarning, fleetv1alpha1.ReasonNameTaken, "Import",
				"A %s has the label of this import, but was not created by it; it is left alone", o.GetKind())
		}
		return true
	})
}

// verifyCascade checks, before an object is deleted or core may finish its deletion, that what core deletes with it
// belongs to the import, or does not exist.
func (r *Reconciler) verifyCascade(ctx context.Context, s *scope, o *unstructured.Unstructured) error {
	nodes, _, err := unstructured.NestedSlice(o.Object, "status", "nodeRefs")
	if (err != nil || len(nodes) > 0) && len(ownership.Cascades(o.GroupVersionKind().GroupKind())) > 0 {
		return stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused,
			"%s %q names Nodes in its status, which Cluster API core would delete; it is not deleted", o.GetKind(), o.GetName())
	}
	for _, field := range ownership.Cascades(o.GroupVersionKind().GroupKind()) {
		ref, _, err := unstructured.NestedStringMap(o.Object, field...)
		if err == nil && len(ref) == 0 {
			continue
		}
		own, err := r.refersToOwn(ctx, s, o.GetNamespace(), ref)
		if err != nil {
			return err
		}
		if !own {
			return stop(fleetv1alpha1.ConditionReflected, fleetv1alpha1.ReasonReflectionRefused,
				"%s %q refers to %s %q, which was not created by this import; it is not deleted", o.GetKind(), o.GetName(), ref["kind"], ref["name"])
		}
	}
	return nil
}

// refersToOwn reports whether a reference is to an object of the import, or to a missing one of its kinds.
func (r *Reconciler) refersToOwn(ctx context.Context, s *scope, namespace string, ref map[string]string) (bool, error) {
	kind := schema.GroupKind{Group: ref["apiGroup"], Kind: ref["kind"]}
	if !slices.Contains(reflection.ReflectedKinds(s.wanted.Cloud), kind) {
		return false, nil
	}
	there := &unstructured.Unstructured{}
	err := r.whereServed(ctx, kind, func(gvk schema.GroupVersionKind) error {
		there.SetGroupVersionKind(gvk)
		return r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref["name"]}, there)
	})
	switch {
	case errors.Is(err, errNotServed) || apierrors.IsNotFound(err) && !isNotServed(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot get %s %q: %w", ref["kind"], ref["name"], err)
	}
	return ownership.MadeBy(there, s.wanted), nil
}
