// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// maxValue is the maximum length of an annotation that says whose an object of the hub is. Ours are shorter; a cut one
// equals no identifier in use. All readers cut: an index must find what it has stored when the object is gone.
const maxValue = 512

// mark is getAnnotation for such an annotation.
func mark(obj metav1.Object, name string) (string, bool) {
	value, found := getAnnotation(obj, name)
	if len(value) > maxValue {
		value = strings.Clone(value[:maxValue]) // A part of a string keeps all of it in memory.
	}
	return value, found
}

// Annotations returns the annotations of an object of the hub that say whose it is, was and may become.
func Annotations(obj metav1.Object) map[string]string {
	out := map[string]string{}
	for _, name := range []string{
		fleetv1alpha1.SourceUIDAnnotation, fleetv1alpha1.SourceNamespaceAnnotation,
		fleetv1alpha1.SourceClusterUIDAnnotation, fleetv1alpha1.SourceNamespaceUIDAnnotation,
		fleetv1alpha1.SourceClaimUIDAnnotation, fleetv1alpha1.CreatedByAnnotation,
		fleetv1alpha1.AdoptableByAnnotation, fleetv1alpha1.ReleasedFromAnnotation,
	} {
		if value, ok := mark(obj, name); ok {
			out[name] = value
		}
	}
	return out
}

// getAnnotation is obj.GetAnnotations()[name], and whether it exists. GetAnnotations of an unstructured object copies
// all annotations. For the few that are read here, each time a claim is reconciled, that was a twelfth of the manager's
// allocations.
func getAnnotation(obj metav1.Object, name string) (string, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		value, found := obj.GetAnnotations()[name]
		return value, found
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, value := range annotations {
		switch value.(type) {
		case nil, string:
		default:
			// All or none, as in GetAnnotations: both readers must agree.
			return "", false
		}
	}
	value, found := annotations[name]
	text, _ := value.(string) // Null is empty, as in GetAnnotations.
	return text, found
}
