// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// AppliedHashAnnotation is set on a claim in the hub to the hash of Masthead's last apply. The watch does not keep
// managedFields, and comparing desired and actual state does not reveal fields that are no longer wanted; the hash
// does. It reveals nothing that is not in the object itself.
const AppliedHashAnnotation = "agent.masthead.dev/applied-hash"

// Released returns an unowned copy of an object of the hub, which names its former owner and namespace. Nothing else
// changes.
//
// Our field manager gives up its fields without removing them. If it kept them, a later adopter would share them with a
// manager that never applies again, and could set them but never remove one.
func Released(obj *unstructured.Unstructured, us Source) *unstructured.Unstructured {
	out := obj.DeepCopy()
	annotations := out.GetAnnotations()
	for key := range us.Annotations() {
		delete(annotations, key)
	}
	delete(annotations, AppliedHashAnnotation)
	delete(annotations, fleetv1alpha1.SourceClaimUIDAnnotation)
	delete(annotations, fleetv1alpha1.CreatedByAnnotation)
	annotations[fleetv1alpha1.ReleasedFromAnnotation] = us.String()
	out.SetAnnotations(annotations)

	manager := FieldManager(us.Identifier)
	fields := slices.DeleteFunc(out.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
	if len(fields) == 0 {
		// Without any entry, the next apply would add a manager of all fields (before-first-apply).
		fields = append(fields, noteOfRelease(out.GetAPIVersion()))
	}
	out.SetManagedFields(fields)
	return out
}

// noteOfRelease returns our managedFields entry for the note of the former owner.
func noteOfRelease(apiVersion string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: fleetv1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiVersion,
		FieldsType: "FieldsV1",
		FieldsV1:   metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + fleetv1alpha1.ReleasedFromAnnotation + `":{}}}}`),
	}
}
