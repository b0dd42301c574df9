// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// Facts are what is known of a claim when it is decided what is done about it. They come from watches and caches; no
// API server is asked. The exception is unauthenticated: credentials are read from the workload cluster when they are
// used and the last look is old.
type Facts struct {
	request.Request

	// Claim is the claim in the workload cluster. It is shared, and replaced by what a write returned.
	Claim *unstructured.Unstructured

	// Vanished says that the claim is gone, and claim is its last state.
	Vanished bool

	// Protected says that the claim had our finalizer when the reconcile began, so that a creation for it may have been
	// sent before.
	Protected bool

	// Us is the source of the claim, as the hub's object shall name it, and home is where that source is now, as far as it
	// is known.
	Us   ownership.Source
	Home ownership.Residence

	// NamespaceObject is the claim's namespace in the workload cluster, without what the agent does not use of it; nil if
	// it is not known, or is gone.
	NamespaceObject *unstructured.Unstructured

	// Class is the cluster's EnrollmentClass; nil if there is none of that name.
	Class     *fleetv1alpha1.EnrollmentClass
	ClassName string

	// PublishedKnown is whether it is known what the hub publishes, published whether that is the kind, in the version
	// that the claim is followed in, and offered whether it is published to the cluster. form is what it is published as.
	PublishedKnown, Published, Offered bool
	Form                               crossplane.Form

	// Pairing is what decides where the claim goes; nil if that is not known, and unpaired is why, if a user should know.
	Pairing  *Pairing
	Unpaired *condition.Problem

	// Target is where in the hub the claim's object would be created; nil if untargeted says why nowhere.
	Target     *ownership.Place
	Untargeted *condition.Problem

	// Unresolved is why the claim is not carried whose references are not resolved; nil if they are.
	Unresolved *condition.Problem

	// Unauthenticated is why nobody's rights can be used in the hub, and RetryAfter when to look again.
	Unauthenticated *condition.Problem
	RetryAfter      time.Duration

	Hub HubFacts
}

// HubFacts are what the watch of the hub knows of the claim's object.
type HubFacts struct {
	// Known is whether the objects of the kind are known, and unknown is why not, if a user should know.
	Known   bool
	Unknown *condition.Problem

	// Gone is whether the hub has no definition of the kind any more, and hence no objects.
	Gone bool

	// Target is the object at the place where the claim's would be created, and recorded the one where the claim records
	// its object.
	Target, Recorded *unstructured.Unstructured

	// Named are the objects that name the claim's source, wherever they are. They are looked for only if the claim's
	// object is not where it is recorded or should be.
	Named []NamedObject
}

// NamedObject is an object of the hub that names a source. The object is nil if it is not known.
type NamedObject struct {
	Place  ownership.Place
	Object *unstructured.Unstructured
}

// IsGoing is whether the claim is being deleted or is gone.
func (f *Facts) IsGoing() bool { return f.Vanished || f.Claim.GetDeletionTimestamp() != nil }

// IsDisabled is whether the class has the claims of its clusters left alone.
func (f *Facts) IsDisabled() bool {
	return f.Class != nil && f.Class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled
}

// IsPaused is whether the claim's owner has it left alone. Nobody could have a claim that is gone go on, so that it is
// not paused any more.
func (f *Facts) IsPaused() bool { return !f.Vanished && isPaused(f.Claim) }

// ownership is whose an object of the hub is, from the point of view of the claim.
func (f *Facts) ownership(obj metav1.Object) ownership.State {
	owned := ownership.Of(true, obj, f.Us)
	if owned == ownership.Ours && f.Home.Succeeds(obj) {
		return ownership.Former
	}
	return owned
}

// Owns is whether an object of the hub is the claim's.
func (f *Facts) Owns(obj metav1.Object) bool { return f.ownership(obj) == ownership.Ours }

// PlaceIn is the claim's place in a namespace of the hub.
func (f *Facts) PlaceIn(namespace string) ownership.Place {
	return ownership.Place{Kind: f.Kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.Name}}
}

// RecordedPlace is where the claim records its object, if it does.
func (f *Facts) RecordedPlace() (ownership.Place, bool) {
	was, ok := ownership.RecordOf(f.Claim)
	return f.PlaceIn(was.Namespace), ok
}

// Own is the claim's object in the hub, as far as it is known: the one that it records, else the one where it should be
// if the kind is offered.
func (f *Facts) Own() *unstructured.Unstructured {
	if was, ok := ownership.RecordOf(f.Claim); ok && f.Hub.Recorded != nil && (was.UID == "" || f.Hub.Recorded.GetUID() == was.UID) && f.Owns(f.Hub.Recorded) {
		return f.Hub.Recorded
	}
	if f.Offered && f.Hub.Target != nil && f.Owns(f.Hub.Target) {
		return f.Hub.Target
	}
	return nil
}

// Elsewhere is where in the hub the claim's object is, if that is not the place where it should be; nil if it is there,
// or nowhere.
//
// What the claim records decides. An object elsewhere that names the claim's source is a stray (package view counts
// strays). Only a claim without a record of an object that still exists, as from before there were records, is more
// careful: an object anywhere that names its source keeps another one from being created, and nothing else.
func (f *Facts) Elsewhere() *NamedObject {
	if at, ok := f.RecordedPlace(); ok && f.Hub.Recorded != nil && f.Owns(f.Hub.Recorded) {
		if at == *f.Target {
			return nil
		}
		return &NamedObject{Place: at, Object: f.Hub.Recorded}
	}
	if f.Hub.Target != nil && f.Owns(f.Hub.Target) {
		return nil
	}
	for _, n := range f.Hub.Named {
		if n.Place != *f.Target && (n.Object == nil || f.Owns(n.Object)) {
			return &n
		}
	}
	return nil
}

// RecordedPlaces are where in the hub the claim's object can be, without the place where it would be created: where the
// claim records it, else wherever an object names the claim's source.
func (f *Facts) RecordedPlaces() []NamedObject {
	if at, ok := f.RecordedPlace(); ok {
		return []NamedObject{{Place: at, Object: f.Hub.Recorded}}
	}
	return f.Hub.Named
}
