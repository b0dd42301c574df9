// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
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
//
// The record costs no request of its own. With the finalizer, before anything is created, the claim announces the place
// alone. That there was an object is then said by the status that the claim shows: Crossplane's conditions come from an
// object that was the claim's, and stay when it is gone. Where they do not show, as in kinds without a status, or do
// not show any more, because another object has taken the place of the first one and has no status yet, the claim
// records the UID of its object, in a request more. So it does if it shows such conditions before it announces a place:
// they are about an object of before.

// Record says which object of the hub is a claim's.
type Record struct {
	// Namespace of the object, in the hub.
	Namespace string

	// UID of the object; empty where the claim records the place alone.
	UID types.UID
}

// Consent is what a claim's owner writes into fleetv1alpha1.RecreateAnnotation to have another object in place of the
// one that is recorded: its UID, or that of the claim for the first one, whose UID is not recorded.
func (r Record) Consent(claim metav1.Object) string {
	if r.UID == "" {
		return string(claim.GetUID())
	}
	return string(r.UID)
}

// isSpent is whether the owner of a claim has consented to the loss of what is recorded. Whatever the claim has now is
// to be recorded, so that this is no consent to the next loss.
func (r Record) isSpent(claim metav1.Object) bool {
	consent, _ := annotationOf(claim, fleetv1alpha1.RecreateAnnotation)
	return consent == r.Consent(claim)
}

// Announcement is what a claim is to record of the place where its object is about to be created, or nothing: for a
// claim that records an object or this very place, or shows conditions of an object of before.
func Announcement(claim *unstructured.Unstructured, namespace string) string {
	was, ok := parse(claim)
	if crossplane.IsReported(claim) || ok && (was.UID != "" || was.Namespace == namespace) {
		return ""
	}
	return namespace + "//" + string(claim.GetUID())
}

// Announces is whether a claim records a place alone.
func Announces(claim metav1.Object) bool {
	was, ok := parse(claim)
	return ok && was.UID == ""
}

// Records is whether what a claim records says which object of the hub is its own.
func Records(claim *unstructured.Unstructured, hub metav1.Object) bool {
	was, ok := RecordOf(claim)
	if !ok || was.Namespace != hub.GetNamespace() {
		return false
	}
	return was.UID == hub.GetUID() || was.UID == "" && !was.isSpent(claim)
}

// RecordOf returns what a claim records. What was recorded for another claim, from which this one was copied, does not
// count, nor does a place while nothing shows that there was an object.
func RecordOf(claim *unstructured.Unstructured) (Record, bool) {
	was, ok := parse(claim)
	if !ok || was.UID == "" && !crossplane.IsReported(claim) {
		return Record{}, false
	}
	return was, true
}

// parse reads the annotation.
func parse(claim metav1.Object) (Record, bool) {
	annotation, _ := annotationOf(claim, fleetv1alpha1.HubObjectAnnotation)
	parts := strings.Split(annotation, "/")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" || types.UID(parts[2]) != claim.GetUID() {
		return Record{}, false
	}
	return Record{Namespace: parts[0], UID: types.UID(parts[1])}, true
}

// RecordFor is the value of the annotation by which a claim records an object of the hub.
func RecordFor(claim, hub metav1.Object) string {
	return hub.GetNamespace() + "/" + string(hub.GetUID()) + "/" + string(claim.GetUID())
}

// SetRecord has a claim record something.
func SetRecord(claim metav1.Object, record string) {
	annotations := claim.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleetv1alpha1.HubObjectAnnotation] = record
	claim.SetAnnotations(annotations)
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
