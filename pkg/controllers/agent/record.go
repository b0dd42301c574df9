// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// A claim records which object of the hub is its own. Two questions are answered by the record and by nothing else:
//
//   - Is the claim's object in another namespace of the hub than the one to which the claim would go now? Any object of the hub
//     can name any source, in any namespace: by accident, as when a backup is restored under another name, or on purpose. One
//     that the claim does not record is not the claim's, wherever it is, as long as the claim has one.
//   - Was the claim's object deleted, or was there never one?
//
// The record is on the claim rather than in memory, so that a restart changes no answer. Its owner can change or remove it,
// and decides thereby about objects of that same source only: what is in the hub has to name the claim's source, too.

// record says which object of the hub is a claim's.
type record struct {
	// namespace of the object, in the hub.
	namespace string
	uid       types.UID
}

// recordOf returns what a claim records. What was recorded for another claim, from which this one was copied, does not count.
func recordOf(claim metav1.Object) (record, bool) {
	parts := strings.Split(claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation], "/")
	if len(parts) != 3 || slices.Contains(parts, "") || types.UID(parts[2]) != claim.GetUID() {
		return record{}, false
	}
	return record{namespace: parts[0], uid: types.UID(parts[1])}, true
}

// recordFor is the value of the annotation by which a claim records an object of the hub.
func recordFor(claim, hub metav1.Object) string {
	return hub.GetNamespace() + "/" + string(hub.GetUID()) + "/" + string(claim.GetUID())
}

// withoutRecord removes the record of a claim that Masthead lets go.
func withoutRecord(claim metav1.Object) {
	annotations := claim.GetAnnotations()
	if _, ok := annotations[fleetv1alpha1.HubObjectAnnotation]; !ok {
		return
	}
	delete(annotations, fleetv1alpha1.HubObjectAnnotation)
	claim.SetAnnotations(annotations)
}

// conflictsWithRecord is whether an API server refused an apply because somebody else wrote the record, or applied annotations
// without content, which nobody else may add to by an apply.
func conflictsWithRecord(err error) bool {
	return slices.ContainsFunc(conflictCauses(err), func(c metav1.StatusCause) bool {
		return c.Field == ".metadata.annotations" || strings.HasSuffix(c.Field, "."+fleetv1alpha1.HubObjectAnnotation)
	})
}

// mayCreate is whether an object may be created for a claim that has none at a place of the hub, or why not.
//
// One that was there and is gone was deleted by somebody else: Masthead deletes only when the claim goes or moves. A new
// object gets new infrastructure. That is an empty database in place of a lost one, of which every condition says that all is
// well; so the class or the claim's owner has to want it. The owner names the object that was deleted, so that what he said
// once does not count for the next loss.
func mayCreate(claim metav1.Object, policy fleetv1alpha1.RecreatePolicy, moves bool, kind string, place hubKey) *problem {
	was, recorded := recordOf(claim)
	switch {
	case !recorded, policy == fleetv1alpha1.RecreatePolicyAlways,
		claim.GetAnnotations()[fleetv1alpha1.RecreateAnnotation] == string(was.uid),
		moves && was.namespace != place.Namespace:
		return nil
	}
	return &problem{
		reason: ReasonHubObjectDeleted,
		message: fmt.Sprintf("The %s %q in the namespace %q of the hub was deleted there, not by Masthead. No other one is created, because it "+
			"would be new and empty. Restore it in the hub, delete this claim, or annotate it with %s: %s to have a new one.",
			kind, place.Name, was.namespace, fleetv1alpha1.RecreateAnnotation, was.uid),
	}
}

// elsewhere is where in the hub the claim's object is, if that is not the place where it should be; nil if it is there, or
// nowhere.
//
// What the claim records decides. A claim without a record of an object that still exists, as from before there were records,
// is more careful: an object anywhere that names its source keeps another one from being created, and nothing else.
func (r *requirementReconciler) elsewhere(s *scope, place hubKey, held bool) *hubKey {
	if was, ok := recordOf(s.claim); ok {
		at := hubKey{kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: was.namespace, Name: s.Name}}
		obj, err := r.hub.watcher.Get(at.kind, at.NamespacedName)
		if err == nil && s.owns(obj) {
			if at == place {
				return nil
			}
			return &at
		}
	}
	if held {
		return nil
	}
	for _, at := range r.hub.placesOf(origin{source: s.us, kind: s.Kind, name: s.Name}) {
		if obj, err := r.hub.watcher.Get(at.kind, at.NamespacedName); at != place && (err != nil || s.owns(obj)) {
			return &at
		}
	}
	return nil
}

// recordedInHub is the object that a claim records and that is still its own, if the claim is not pushed only because its class does not
// offer the kind any more. What the hub has made of the claim before then goes on to be shown; a claim without a record waits.
func (r *requirementReconciler) recordedInHub(s *scope, p *problem) *unstructured.Unstructured {
	was, ok := recordOf(s.claim)
	if !ok || p.reason != ReasonKindNotOffered || !s.published {
		return nil
	}
	obj, err := r.hub.watcher.Get(s.Kind, types.NamespacedName{Namespace: was.namespace, Name: s.Name})
	if err != nil || obj.GetUID() != was.uid || !s.owns(obj) {
		return nil
	}
	return obj
}

// recordedPlaces are where in the hub the claim's object can be, without the place where it would be created: what the claim
// records, else wherever an object names the claim's source.
func (r *requirementReconciler) recordedPlaces(s *scope) []hubKey {
	if was, ok := recordOf(s.claim); ok {
		return []hubKey{{kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: was.namespace, Name: s.Name}}}
	}
	return r.hub.placesOf(origin{source: s.us, kind: s.Kind, name: s.Name})
}
