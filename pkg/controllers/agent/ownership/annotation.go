// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// annotationOf is obj.GetAnnotations()[name], and whether it is there. An unstructured object copies all of its
// annotations for whoever gets them. For the few that are read here, at each look at a claim, that was a twelfth of all
// that the manager allocated.
func annotationOf(obj metav1.Object, name string) (string, bool) {
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
			// All or none, as there: an object must not have annotations for one reader and none for another.
			return "", false
		}
	}
	value, found := annotations[name]
	text, _ := value.(string) // Null is empty, as there.
	return text, found
}
