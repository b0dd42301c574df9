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

// Any object of the hub can name any source, in any namespace: by accident, as when a backup is restored under another
// name, or on purpose, before the claim is pushed. So the object that is created for a claim has the claim's UID, by
// which it is found until the claim's record says where it is. From then on the record decides: copies have that UID,
// too.
//
// The claim records where its object is, and thereby whether it had one that was deleted. The record is on the claim
// rather than in memory, so that a restart changes no answer. Its owner can change or remove it, but that affects only
// objects of the same source.
//
// The place is written with the finalizer, before anything is created. That an object existed follows from the claim's
// status: Crossplane's conditions come from an object that was the claim's, and stay when it is gone. If there are
// none, or if they are about an earlier object, one more request records the object's UID.

// Record is what a claim says of its object in the hub.
type Record struct {
	// Namespace of the object, in the hub.
	Namespace string

	// UID of the object; empty if the claim records only the place.
	UID types.UID
}

// Existed reports whether the recorded object of a claim existed.
func (r Record) Existed(claim *unstructured.Unstructured) bool {
	return r.UID != "" || crossplane.IsReported(claim)
}

// Belongs reports whether an object of the hub that names the source of a claim is the claim's, other than by being
// where the claim goes now.
func Belongs(obj metav1.Object, claim *unstructured.Unstructured) bool {
	if was, ok := GetRecord(claim); ok && was.Existed(claim) {
		return obj.GetNamespace() == was.Namespace
	}
	uid, _ := getAnnotation(obj, fleetv1alpha1.SourceClaimUIDAnnotation)
	_, before, _ := parse(claim) // A restored claim has another UID than the one in its record.
	return IsFor(obj, claim) || uid != "" && types.UID(uid) == before
}

// IsFor reports whether an object of the hub was created for a claim, or is a copy of such an object.
func IsFor(obj, claim metav1.Object) bool {
	uid, _ := getAnnotation(obj, fleetv1alpha1.SourceClaimUIDAnnotation)
	return uid != "" && types.UID(uid) == claim.GetUID()
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
	consent, _ := getAnnotation(claim, fleetv1alpha1.RecreateAnnotation)
	return consent == r.Consent(claim)
}

// Announcement returns what a claim should record of the place where its object is about to be created, or nothing: for
// a claim that records an object or this very place, or shows conditions of an earlier object.
func Announcement(claim *unstructured.Unstructured, namespace string) string {
	was, ok := GetRecord(claim)
	if crossplane.IsReported(claim) || ok && (was.UID != "" || was.Namespace == namespace) {
		return ""
	}
	return namespace + "//" + string(claim.GetUID())
}

// Records reports whether a claim's record identifies its object in the hub.
func Records(claim *unstructured.Unstructured, hub metav1.Object) bool {
	was, ok := GetRecord(claim)
	if !ok || was.Namespace != hub.GetNamespace() || !was.Existed(claim) {
		return false
	}
	return was.UID == hub.GetUID() || was.UID == "" && !was.isSpent(claim)
}

// GetRecord returns a claim's record. A record copied from another claim does not count.
func GetRecord(claim metav1.Object) (Record, bool) {
	was, uid, ok := parse(claim)
	if !ok || uid != claim.GetUID() {
		return Record{}, false
	}
	return was, true
}

// parse returns the record in a claim's annotation, and the UID of the claim that it is about.
func parse(claim metav1.Object) (was Record, uid types.UID, ok bool) {
	annotation, _ := getAnnotation(claim, fleetv1alpha1.HubObjectAnnotation)
	parts := strings.Split(annotation, "/")
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return Record{}, "", false
	}
	return Record{Namespace: parts[0], UID: types.UID(parts[1])}, types.UID(parts[2]), true
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
