// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// AppliedHashAnnotation is set on a claim in the hub and is the hash of what Masthead applied last. The watch does not
// keep managedFields, and comparing what is wanted with what is there does not show that a field is not wanted any
// more; the hash does. It says nothing that is not in the object itself.
const AppliedHashAnnotation = "agent.masthead.dev/applied-hash"

// Released returns an object of the hub as nobody's, which says whose it was, and from which namespace. Nothing else of
// it changes.
//
// Our field manager gives up its fields without removing them. If it kept them, whoever adopts the object later would
// share them with a manager that never applies again, and could set them but never remove one.
func Released(obj *unstructured.Unstructured, us Source) *unstructured.Unstructured {
	out := obj.DeepCopy()
	annotations := out.GetAnnotations()
	for key := range us.Annotations() {
		delete(annotations, key)
	}
	delete(annotations, AppliedHashAnnotation)
	delete(annotations, fleetv1alpha1.CreatedByAnnotation)
	delete(annotations, fleetv1alpha1.CreatedAtAnnotation)
	annotations[fleetv1alpha1.ReleasedFromAnnotation] = us.String()
	out.SetAnnotations(annotations)

	manager := FieldManager(us.Identifier)
	fields := slices.DeleteFunc(out.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
	if len(fields) == 0 {
		// An object without any would get a manager of all its fields (before-first-apply) with the next apply.
		fields = append(fields, noteOfRelease(out.GetAPIVersion()))
	}
	out.SetManagedFields(fields)
	return out
}

// noteOfRelease is the entry of managedFields that says that we wrote whose an object was.
func noteOfRelease(apiVersion string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: fleetv1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{
			Raw: []byte(`{"f:metadata":{"f:annotations":{"f:` + fleetv1alpha1.ReleasedFromAnnotation + `":{}}}}`),
		},
	}
}
