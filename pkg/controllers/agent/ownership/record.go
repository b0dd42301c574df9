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

// A claim records which object of the hub is its own. The record alone answers two questions:
//
//   - Is the claim's object in another namespace of the hub than its target? Any object of the hub can name any source,
//     in any namespace: by accident, as when a backup is restored under another name, or on purpose. While a claim has
//     an object, one that it does not record is not its own, wherever it is.
//   - Was the claim's object deleted, or did it never exist?
//
// The record is on the claim rather than in memory, so that a restart changes no answer. Its owner can change or remove
// it, but that affects only objects of the same source: an object in the hub has to name the claim's source, too.
//
// The record needs no extra request. With the finalizer, before anything is created, the claim announces the place
// only. That an object existed then follows from the claim's status: Crossplane's conditions come from an object that
// was the claim's, and stay when it is gone. If there are none, as in kinds without a status, or no longer any, because
// another object has replaced the first one and has no status yet, one more request records the object's UID in the
// claim. The same is done if the claim shows such conditions before it announces a place: they are about an earlier
// object.

// Record identifies a claim's object in the hub.
type Record struct {
	// Namespace of the object, in the hub.
	Namespace string

	// UID of the object; empty if the claim records only the place.
	UID types.UID
}

// Consent returns what a claim's owner writes into fleetv1alpha1.RecreateAnnotation to replace the recorded object: its
// UID, or the claim's for the first object, whose UID is not recorded.
func (r Record) Consent(claim metav1.Object) string {
	if r.UID == "" {
		return string(claim.GetUID())
	}
	return string(r.UID)
}

// isSpent reports whether the owner of a claim has consented to the loss of the recorded object. The claim's current
// object is recorded then, so that the consent does not cover the next loss.
func (r Record) isSpent(claim metav1.Object) bool {
	consent, _ := annotationOf(claim, fleetv1alpha1.RecreateAnnotation)
	return consent == r.Consent(claim)
}

// Announcement returns what a claim should record of the place where its object is about to be created, or nothing: for
// a claim that records an object or this very place, or shows conditions of an earlier object.
func Announcement(claim *unstructured.Unstructured, namespace string) string {
	was, ok := parse(claim)
	if crossplane.IsReported(claim) || ok && (was.UID != "" || was.Namespace == namespace) {
		return ""
	}
	return namespace + "//" + string(claim.GetUID())
}

// Announces reports whether a claim records only a place.
func Announces(claim metav1.Object) bool {
	was, ok := parse(claim)
	return ok && was.UID == ""
}

// Records reports whether a claim's record identifies its object in the hub.
func Records(claim *unstructured.Unstructured, hub metav1.Object) bool {
	was, ok := RecordOf(claim)
	if !ok || was.Namespace != hub.GetNamespace() {
		return false
	}
	return was.UID == hub.GetUID() || was.UID == "" && !was.isSpent(claim)
}

// RecordOf returns a claim's record. A record copied from another claim does not count, nor does a place while nothing
// shows that an object existed.
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

// RecordFor returns the annotation value by which a claim records an object of the hub.
func RecordFor(claim, hub metav1.Object) string {
	return hub.GetNamespace() + "/" + string(hub.GetUID()) + "/" + string(claim.GetUID())
}

// SetRecord sets a claim's record.
func SetRecord(claim metav1.Object, record string) {
	annotations := claim.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleetv1alpha1.HubObjectAnnotation] = record
	claim.SetAnnotations(annotations)
}

// WithoutRecord removes the record of a claim that Masthead releases.
func WithoutRecord(claim metav1.Object) {
	annotations := claim.GetAnnotations()
	if _, ok := annotations[fleetv1alpha1.HubObjectAnnotation]; !ok {
		return
	}
	delete(annotations, fleetv1alpha1.HubObjectAnnotation)
	claim.SetAnnotations(annotations)
}
