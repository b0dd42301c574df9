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
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Facts are the inputs of a decision about a claim. They come from watches and caches, not from API requests. The
// exceptions are Unauthenticated, since credentials are read from the workload cluster when they are used and the last
// read is old, and objects of the hub of which the watch keeps little.
type Facts struct {
	multicluster.ObjectRequest

	// Claim is the claim in the workload cluster. It is shared.
	Claim *unstructured.Unstructured

	// Vanished means that the claim is gone; Claim is its last state.
	Vanished bool

	// Protected means that the claim had our finalizer when the reconcile began, so that a creation may have been sent
	// before.
	Protected bool

	// Source is the claim's source, to be named by the hub's object. Home is where that source is now, as far as known.
	Source    ownership.Source
	Residence ownership.Residence

	// NamespaceObject is the claim's namespace in the workload cluster, reduced to what the agent uses; nil if unknown or
	// gone.
	NamespaceObject *unstructured.Unstructured

	// Class is the cluster's EnrollmentClass; nil if it does not exist.
	Class     *fleetv1alpha1.EnrollmentClass
	ClassName string

	// HubKind is the claim's kind in the version in which the hub is read. It can differ from the claim's.
	HubKind kindwatch.Kind

	// PublishedKnown means that the hub's publications are known, Published that they include the kind in the claim's
	// version, and Offered that it is published to the cluster. Form is the form in which it is published.
	PublishedKnown, Published, Offered bool
	Form                               crossplane.Form

	// Pairing decides the claim's target; nil if unknown. Unpaired is the reason, if it should be reported to the user.
	Pairing  *Pairing
	Unpaired *condition.Error

	// Target is where in the hub the claim's object would be created; nil if Untargeted says why there is none.
	Target     *ownership.Place
	Untargeted *condition.Error

	// Unresolved is why unresolved references keep the claim from being pushed; nil if they are resolved.
	Unresolved *condition.Error

	// Full is why no further object may be created for the claim's cluster or namespace; nil if one may.
	Full *condition.Error

	// Unauthenticated is why no identity can be used in the hub, and RetryAfter when to retry.
	Unauthenticated *condition.Error
	RetryAfter      time.Duration

	Hub HubFacts
}

// HubFacts are what the hub's watch has on the claim's object.
type HubFacts struct {
	// Known means that the kind's objects are cached. Unknown is why they are not, if it should be reported to the user.
	Known   bool
	Unknown *condition.Error

	// Gone means that the hub no longer has a definition of the kind, and hence no objects.
	Gone bool

	// Target is the object at the place where the claim's would be created, Recorded the one that the claim records.
	Target, Recorded *unstructured.Unstructured

	// Elsewhere are the claim's objects in other places. They are looked up only if there is none where it is recorded or
	// should be, or if the claim is being deleted.
	Elsewhere []PlacedObject
}

// PlacedObject is an object of the hub and its place. The object is nil if there is none.
type PlacedObject struct {
	Place  ownership.Place
	Object *unstructured.Unstructured
}

// IsGoing reports whether the claim is being deleted or is gone.
func (f *Facts) IsGoing() bool { return f.Vanished || f.Claim.GetDeletionTimestamp() != nil }

// IsDisabled reports whether the class disables the claims of its clusters.
func (f *Facts) IsDisabled() bool {
	return f.Class != nil && f.Class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled
}

// IsPaused reports whether the claim's owner paused it. A vanished claim is never paused, since its owner could not
// unpause it.
func (f *Facts) IsPaused() bool { return !f.Vanished && isPaused(f.Claim) }

// ownership returns the ownership of an object in the hub, as seen by the claim. An object that was created for this
// very claim stays its own, even if it names an earlier namespace: the watch of namespaces can be behind.
func (f *Facts) ownership(obj metav1.Object) ownership.State {
	owned := ownership.Classify(true, obj, f.Source)
	if owned == ownership.Ours && f.Residence.Succeeds(obj) && !ownership.IsFor(obj, f.Claim) {
		return ownership.Former
	}
	return owned
}

// Owns reports whether an object in the hub names the claim's source. At the claim's target it is the claim's then:
// a user who may create objects there could also have its name taken.
func (f *Facts) Owns(obj metav1.Object) bool { return f.ownership(obj) == ownership.Ours }

// IsOwn reports whether an object in the hub is the claim's, wherever it is.
func (f *Facts) IsOwn(obj metav1.Object) bool {
	return f.Owns(obj) && (f.Target != nil && obj.GetNamespace() == f.Target.Namespace || ownership.Belongs(obj, f.Claim))
}

// PlaceIn returns the claim's place in a namespace of the hub.
func (f *Facts) PlaceIn(namespace string) ownership.Place {
	return ownership.Place{Kind: f.HubKind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.Name}}
}

// RecordedPlace returns where the claim records its object, if it does.
func (f *Facts) RecordedPlace() (ownership.Place, bool) {
	was, ok := ownership.GetRecord(f.Claim)
	return f.PlaceIn(was.Namespace), ok
}

// recorded returns the claim's object at the place that the claim records; nil if there is none.
func (f *Facts) recorded() *unstructured.Unstructured {
	if f.Hub.Recorded != nil && f.IsOwn(f.Hub.Recorded) {
		return f.Hub.Recorded
	}
	return nil
}

// Own returns the claim's object in the hub, as far as known: the recorded one, else the one at the target if the kind
// is offered.
func (f *Facts) Own() *unstructured.Unstructured {
	if own := f.recorded(); own != nil {
		return own
	}
	if f.Offered && f.Hub.Target != nil && f.Owns(f.Hub.Target) {
		return f.Hub.Target
	}
	return nil
}

// Elsewhere returns where in the hub the claim's object is, if not at the target; nil if it is there, or nowhere. Other
// objects that name the claim's source are strays (counted in package index).
func (f *Facts) Elsewhere() *PlacedObject {
	if at, _ := f.RecordedPlace(); f.recorded() != nil && at != *f.Target {
		return &PlacedObject{Place: at, Object: f.Hub.Recorded}
	}
	if len(f.Hub.Elsewhere) > 0 && (f.Hub.Target == nil || !f.Owns(f.Hub.Target)) {
		return &f.Hub.Elsewhere[0]
	}
	return nil
}

// Places returns where in the hub the claim's object can be: where the claim records it, at its target, and where an
// object names it.
func (f *Facts) Places() []PlacedObject {
	var places []PlacedObject
	if at, ok := f.RecordedPlace(); ok {
		places = append(places, PlacedObject{Place: at, Object: f.Hub.Recorded})
	}
	if f.Target != nil && (len(places) == 0 || places[0].Place != *f.Target) {
		places = append(places, PlacedObject{Place: *f.Target, Object: f.Hub.Target})
	}
	return append(places, f.Hub.Elsewhere...)
}
