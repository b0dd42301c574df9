// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Wanted is the wanted state of an object in a workload cluster. It is immutable.
type Wanted struct {
	// Content is the object without its metadata.
	Content map[string]any

	// Name, Labels and Annotations are the wanted metadata.
	Name                string
	Labels, Annotations map[string]string

	// ExactLabels removes other labels. They are kept on objects that are not copies: cluster inventories label
	// definitions and policies.
	ExactLabels bool
}

// Over returns the object to write: over have, whose other metadata it keeps, or a new one if have is nil. It is for a
// full update rather than a server-side apply, which would keep fields that others added to the content. The resource
// version prevents overwriting unseen changes. Content is shared with w.
func (w Wanted) Over(have *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(w.Content)}
	metadata := map[string]any{"name": w.Name}
	if have != nil {
		if kept, ok := have.Object["metadata"].(map[string]any); ok {
			metadata = runtime.DeepCopyJSON(kept)
			delete(metadata, "managedFields") // The API server keeps its own.
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
