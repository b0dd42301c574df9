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
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// conflictsWithRecord is whether an API server refused an apply because somebody else wrote the record, or applied annotations
// without content, which nobody else may add to by an apply.
func conflictsWithRecord(err error) bool {
	return slices.ContainsFunc(propagation.ConflictCauses(err), func(c metav1.StatusCause) bool {
		return c.Field == ".metadata.annotations" || strings.HasSuffix(c.Field, "."+fleetv1alpha1.HubObjectAnnotation)
	})
}

// mayCreate is whether an object may be created for a claim that has none at a place of the hub, or why not.
//
// One that was there and is gone was deleted by somebody else: Masthead deletes only when the claim goes or moves. A new
// object gets new infrastructure. That is an empty database in place of a lost one, of which every condition says that all is
// well; so the class or the claim's owner has to want it. The owner names the object that was deleted, so that what he said
// once does not count for the next loss.
func mayCreate(claim metav1.Object, policy fleetv1alpha1.RecreatePolicy, moves bool, kind string, place ownership.Place) *condition.Problem {
	was, recorded := ownership.RecordOf(claim)
	switch {
	case !recorded, policy == fleetv1alpha1.RecreatePolicyAlways,
		claim.GetAnnotations()[fleetv1alpha1.RecreateAnnotation] == string(was.Uid),
		moves && was.Namespace != place.Namespace:
		return nil
	}
	return &condition.Problem{
		Reason: reason.ReasonHubObjectDeleted,
		Message: fmt.Sprintf("The %s %q in the namespace %q of the hub was deleted there, not by Masthead. No other one is created, because it "+
			"would be new and empty. Restore it in the hub, delete this claim, or annotate it with %s: %s to have a new one.",
			kind, place.Name, was.Namespace, fleetv1alpha1.RecreateAnnotation, was.Uid),
	}
}

// elsewhere is where in the hub the claim's object is, if that is not the place where it should be; nil if it is there, or
// nowhere.
//
// What the claim records decides. A claim without a record of an object that still exists, as from before there were records,
// is more careful: an object anywhere that names its source keeps another one from being created, and nothing else.
func (r *requirementReconciler) elsewhere(s *scope, place ownership.Place, held bool) *ownership.Place {
	if was, ok := ownership.RecordOf(s.claim); ok {
		at := ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: was.Namespace, Name: s.Name}}
		obj, err := r.hub.Watcher.Get(at.Kind, at.NamespacedName)
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
	for _, at := range r.hub.PlacesOf(ownership.Origin{Source: s.us, Kind: s.Kind, Name: s.Name}) {
		if obj, err := r.hub.Watcher.Get(at.Kind, at.NamespacedName); at != place && (err != nil || s.owns(obj)) {
			return &at
		}
	}
	return nil
}

// recordedInHub is the object that a claim records and that is still its own, if the claim is not pushed only because its class does not
// offer the kind any more. What the hub has made of the claim before then goes on to be shown; a claim without a record waits.
func (r *requirementReconciler) recordedInHub(s *scope, p *condition.Problem) *unstructured.Unstructured {
	was, ok := ownership.RecordOf(s.claim)
	if !ok || p.Reason != reason.ReasonKindNotOffered || !s.published {
		return nil
	}
	obj, err := r.hub.Watcher.Get(s.Kind, types.NamespacedName{Namespace: was.Namespace, Name: s.Name})
	if err != nil || obj.GetUID() != was.Uid || !s.owns(obj) {
		return nil
	}
	return obj
}

// recordedPlaces are where in the hub the claim's object can be, without the place where it would be created: what the claim
// records, else wherever an object names the claim's source.
func (r *requirementReconciler) recordedPlaces(s *scope) []ownership.Place {
	if was, ok := ownership.RecordOf(s.claim); ok {
		return []ownership.Place{{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: was.Namespace, Name: s.Name}}}
	}
	return r.hub.PlacesOf(ownership.Origin{Source: s.us, Kind: s.Kind, Name: s.Name})
}
