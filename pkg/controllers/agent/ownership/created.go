// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// MarkCreated sets the creation time on an object about to be created in the hub.
func MarkCreated(obj metav1.Object, now time.Time) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleetv1alpha1.CreatedAtAnnotation] = now.UTC().Format(time.RFC3339Nano)
	obj.SetAnnotations(annotations)
}

// WasCreatedWithin reports whether an object of the hub was created for a claim within a time before now, and not
// changed for it since. It uses Masthead's mark, not the creation timestamp: an object restored from a backup is as old
// as when it was saved. Marks further in the future than that time are ignored.
func WasCreatedWithin(obj metav1.Object, now time.Time, within time.Duration) bool {
	at, ok := CreatedAt(obj)
	age := now.Sub(at)
	return ok && -within < age && age < within
}

// CreatedAt returns when an object of the hub was created for a claim, if it has not been changed for it since.
func CreatedAt(obj metav1.Object) (time.Time, bool) {
	annotation, _ := getAnnotation(obj, fleetv1alpha1.CreatedAtAnnotation)
	at, err := time.Parse(time.RFC3339, annotation)
	return at, err == nil
}
