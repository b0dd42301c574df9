// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// A claim records which object of the hub is its own. Two questions are answered by the record and by nothing else:
//
//   - Is the claim's object in another namespace of the hub than the one to which the claim would go now? Any object of
//     the hub can name any source, in any namespace: by accident, as when a backup is restored under another name, or
//     on purpose. One that the claim does not record is not the claim's, wherever it is, as long as the claim has one.
//   - Was the claim's object deleted, or was there never one?
//
// The record is on the claim rather than in memory, so that a restart changes no answer. Its owner can change or remove
// it, and decides thereby about objects of that same source only: what is in the hub has to name the claim's source,
// too.

// Record says which object of the hub is a claim's.
type Record struct {
	// Namespace of the object, in the hub.
	Namespace string
	UID       types.UID
}

// RecordOf returns what a claim records. What was recorded for another claim, from which this one was copied, does not
// count.
func RecordOf(claim metav1.Object) (Record, bool) {
	parts := strings.Split(claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation], "/")
	if len(parts) != 3 || slices.Contains(parts, "") || types.UID(parts[2]) != claim.GetUID() {
		return Record{}, false
	}
	return Record{Namespace: parts[0], UID: types.UID(parts[1])}, true
}

// RecordFor is the value of the annotation by which a claim records an object of the hub.
func RecordFor(claim, hub metav1.Object) string {
	return hub.GetNamespace() + "/" + string(hub.GetUID()) + "/" + string(claim.GetUID())
}

// WithoutRecord removes the record of a claim that Masthead lets go.
func WithoutRecord(claim metav1.Object) {
	annotations := claim.GetAnnotations()
	if _, ok := annotations[fleetv1alpha1.HubObjectAnnotation]; !ok {
		return
	}
	delete(annotations, fleetv1alpha1.HubObjectAnnotation)
	claim.SetAnnotations(annotations)
}
