// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (s *Server) delete(c *call, body []byte) (int, any, error) {
	options := metav1.DeleteOptions{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	old := s.objects[c.key()]
	if old == nil {
		return 0, nil, apierrors.NewNotFound(c.kind.groupResource(), c.name)
	}
	if err := checkPreconditions(c.key(), options.Preconditions, old); err != nil {
		return 0, nil, err
	}
	dryRun := c.dryRun() || slices.Contains(options.DryRun, metav1.DryRunAll)
	obj := s.marked(c.kind, old, options.PropagationPolicy)
	change := Change{Key: c.key(), Old: old, Manager: c.manager(), DryRun: dryRun}
	if waits(obj) {
		if equality.Semantic.DeepEqual(obj.Object, old.Object) {
			return http.StatusOK, c.shown(old), nil
		}
		change.New = obj
		return http.StatusOK, c.shown(obj), s.commit(change)
	}
	return http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: c.name, Group: c.kind.gvk.Group, Kind: c.kind.resource, UID: old.GetUID()},
	}, s.commit(change)
}

// waits reports whether finalizers keep an object that is being deleted.
func waits(obj *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers")
	return len(obj.GetFinalizers()) > 0 || obj.GetKind() == "Namespace" && len(finalizers) > 0
}

func checkPreconditions(key Key, p *metav1.Preconditions, obj *unstructured.Unstructured) error {
	switch {
	case p == nil:
		return nil
	case p.UID != nil && *p.UID != obj.GetUID():
		return apierrors.NewConflict(key.GroupResource, key.Name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, obj.GetUID()))
	case p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion():
		return apierrors.NewConflict(key.GroupResource, key.Name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)",
			*p.ResourceVersion, obj.GetResourceVersion()))
	}
	return nil
}

// marked returns an object as a deletion leaves it, if it has to wait for anything.
func (s *Server) marked(k *kind, old *unstructured.Unstructured, policy *metav1.DeletionPropagation) *unstructured.Unstructured {
	obj := old.DeepCopy()
	if policy != nil {
		finalizers := slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool {
			return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
		})
		switch *policy {
		case metav1.DeletePropagationForeground:
			finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
		case metav1.DeletePropagationOrphan:
			finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
		case metav1.DeletePropagationBackground:
		}
		obj.SetFinalizers(finalizers)
	}
	if !waits(obj) || obj.GetDeletionTimestamp() != nil {
		return obj
	}
	now := s.seconds()
	obj.SetDeletionTimestamp(&now)
	if k.gvk.Kind == "Namespace" && k.gvk.Group == "" {
		_ = unstructured.SetNestedField(obj.Object, string(corev1.NamespaceTerminating), "status", "phase")
		return obj
	}
	obj.SetDeletionGracePeriodSeconds(new(int64))
	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	return obj
}
