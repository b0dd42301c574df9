// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Wanted is an object as it shall be in a workload cluster. It is never changed.
type Wanted struct {
	// Content is the object without its metadata.
	Content map[string]any

	// Name, Labels and Annotations are what is wanted of the metadata.
	Name                string
	Labels, Annotations map[string]string

	// ExactLabels is whether other labels are removed. They are left on what is not a copy of an object: inventories of
	// clusters label definitions and policies.
	ExactLabels bool
}

// Over returns the object to write: over what there is, whose metadata it keeps as far as they are not about what is
// wanted, or anew if that is nil. It is a whole update rather than a server-side apply: what somebody added to the
// content has to go, and an apply leaves what it does not mention. The resource version keeps it from undoing what has
// not been seen. Content is shared with what is wanted.
func (w Wanted) Over(have *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(w.Content)}
	metadata := map[string]any{"name": w.Name}
	if have != nil {
		if kept, ok := have.Object["metadata"].(map[string]any); ok {
			metadata = runtime.DeepCopyJSON(kept)
			delete(metadata, "managedFields") // An API server goes on with those that it has.
		}
	}
	out.Object["metadata"] = metadata
	labels := map[string]string{}
	if !w.ExactLabels {
		maps.Copy(labels, out.GetLabels())
	}
	maps.Copy(labels, w.Labels)
	out.SetLabels(labels)
	annotations := map[string]string{}
	maps.Copy(annotations, out.GetAnnotations())
	maps.Copy(annotations, w.Annotations)
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	return out
}
