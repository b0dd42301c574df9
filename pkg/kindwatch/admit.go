// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate returns an error if no API server can serve the Kind. Group, version and resource become a URL path and may
// come from untrusted objects: anything but plain path segments would request something else.
func (k Kind) Validate() error {
	if k.Group != "" {
		if errs := validation.IsDNS1123Subdomain(k.Group); len(errs) > 0 {
			return fmt.Errorf("invalid group %q: %s", k.Group, errs[0])
		}
	}
	for what, part := range map[string]string{"version": k.Version, "resource": k.Resource} {
		if errs := validation.IsDNS1123Label(part); len(errs) > 0 {
			return fmt.Errorf("invalid %s %q: %s", what, part, errs[0])
		}
	}
	if k.Namespace != "" {
		if errs := validation.IsDNS1123Label(k.Namespace); len(errs) > 0 {
			return fmt.Errorf("invalid namespace %q: %s", k.Namespace, errs[0])
		}
	}
	if k.Kind == "" {
		return fmt.Errorf("kind of %s.%s is empty", k.Resource, k.Group)
	}
	return nil
}

// admitted converts what a server sent to the form in which it is stored, or returns false if it cannot be an object of
// the kind. Responses need not match the request: an aggregated API may put anything into its items. So the kind is
// always set to the requested one, and an object is dropped as if it had not been sent if its name or namespace is not
// a valid path segment, or if its namespace does not match the scope of the kind or Namespace.
//
// Of managedFields, only entries of the manager keep, or of managers with the prefix keep + "-", are kept.
func (k Kind) admitted(obj runtime.Object, keep string) (*unstructured.Unstructured, bool) {
	u := (*unstructured.Unstructured)(nil)
	switch o := obj.(type) {
	case *unstructured.Unstructured:
		u = o
	case *metav1.PartialObjectMetadata:
		// The converter copies what it converts.
		m := o.ObjectMeta
		m.ManagedFields = nil
		if k.OnlyAnnotations != "" {
			m = k.reduced(&m)
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
		if err != nil {
			return nil, false
		}
		u = &unstructured.Unstructured{Object: map[string]any{"metadata": fields}}
	}
	if u == nil || u.Object == nil || !isSegment(u.GetName()) || len(u.GetUID()) > maxUID || len(u.GetResourceVersion()) > maxVersion {
		return nil, false
	}
	if !k.has(u.GetNamespace()) {
		return nil, false
	}
	if u.GroupVersionKind() != k.GroupVersionKind {
		u.SetGroupVersionKind(k.GroupVersionKind)
	}
	return trimmed(u, keep), true
}

// has reports whether objects of the kind can be in a namespace, which is empty for none.
func (k Kind) has(namespace string) bool {
	switch {
	case k.ClusterScoped:
		return namespace == ""
	case k.Namespace != "":
		return namespace == k.Namespace
	}
	return isSegment(namespace)
}

// reduced returns the part of an object's metadata that a kind with OnlyAnnotations keeps.
func (k Kind) reduced(in *metav1.ObjectMeta) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: in.Namespace, Name: in.Name, UID: in.UID, ResourceVersion: in.ResourceVersion, DeletionTimestamp: in.DeletionTimestamp,
	}
	for name := range strings.SplitSeq(k.OnlyAnnotations, ",") {
		if v, ok := in.Annotations[name]; ok {
			metav1.SetMetaDataAnnotation(&out, name, v)
		}
	}
	for name := range strings.SplitSeq(k.OnlyLabels, ",") {
		if v, ok := in.Labels[name]; ok {
			metav1.SetMetaDataLabel(&out, name, v)
		}
	}
	if c := metav1.GetControllerOf(in); k.KeepController && c != nil && max(len(c.APIVersion), len(c.Kind), len(c.Name), len(c.UID)) <= maxName {
		out.OwnerReferences = []metav1.OwnerReference{*c}
	}
	return out
}

// maxVersion and maxUID are the maximum lengths of a resource version and a UID in bytes. API servers use 64-bit
// numbers and 36 characters. Both are compared often, a version as a number with any number of digits.
const maxVersion, maxUID = 128, 128

// maxName is the maximum length of an object's name or namespace in bytes. Most kinds allow 253; some allow any path
// segment. Names appear untruncated in queue keys, logs and messages.
const maxName = 512

func isSegment(s string) bool {
	return s != "" && len(s) <= maxName && len(content.IsPathSegmentName(s)) == 0
}

// trimmed removes, in place, fields that Masthead never reads and that are often most of an object.
func trimmed(obj *unstructured.Unstructured, keep string) *unstructured.Unstructured {
	trimManagedFields(obj, keep)
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return obj
}

// isManager reports whether a field manager is keep, or has the prefix keep + "-".
func isManager(manager any, keep string) bool {
	name, _ := manager.(string)
	return name == keep || strings.HasPrefix(name, keep+"-")
}

func trimManagedFields(obj *unstructured.Unstructured, keep string) {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	var kept []any
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok && keep != "" && isManager(entry["manager"], keep) {
			kept = append(kept, entry)
		}
	}
	if len(kept) == 0 {
		delete(metadata, "managedFields")
		return
	}
	metadata["managedFields"] = kept
}
