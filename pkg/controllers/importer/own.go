// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

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
