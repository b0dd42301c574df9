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

// Validate returns why a Kind cannot be one that an API server serves, or nil. Group, version and resource become a
// path, and may come from an object that somebody else wrote: what is not a plain segment of a path would be a request
// for something else.
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
	if k.Kind == "" {
		return fmt.Errorf("kind of %s.%s is empty", k.Resource, k.Group)
	}
	return nil
}

// admitted brings what a server sent into the form in which it is kept, or returns false for what cannot be an object
// of the kind. What is asked for is not what a server has to answer: an aggregated API decides alone what its items
// say. So the kind is always the one that was asked for, and an object whose name or namespace could not be part of its
// own path, or that has a namespace where the kind has none or the other way round, is dropped as if it had not been
// sent.
//
// Of managedFields, only what belongs to the manager keep, or to one whose name begins with it and "-", stays.
func (k Kind) admitted(obj any, keep string) (*unstructured.Unstructured, bool) {
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
	if namespace := u.GetNamespace(); k.ClusterScoped && namespace != "" || !k.ClusterScoped && !isSegment(namespace) {
		return nil, false
	}
	if u.GroupVersionKind() != k.GroupVersionKind {
		u.SetGroupVersionKind(k.GroupVersionKind)
	}
	return trimmed(u, keep), true
}

// reduced is as much of an object's metadata as a kind with OnlyAnnotations keeps.
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

// maxVersion and maxUID are how many bytes a resource version and a UID may have. API servers write numbers of 64 bits
// and 36 characters. Both are compared again and again, a version as a number of however many digits it has.
const maxVersion, maxUID = 128, 128

// maxName is how many bytes the name of an object or a namespace may have. Most kinds allow 253; for some any segment
// of a path will do. A name is written into keys of queues, lines of logs and messages without being cut.
const maxName = 512

func isSegment(s string) bool {
	return s != "" && len(s) <= maxName && len(content.IsPathSegmentName(s)) == 0
}

// trimmed removes, in place, what nobody here reads and what is often most of an object.
func trimmed(obj *unstructured.Unstructured, keep string) *unstructured.Unstructured {
	trimManagedFields(obj, keep)
	unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	return obj
}

// isManager is whether a field manager is the one to keep, or one whose name begins with it and "-".
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
