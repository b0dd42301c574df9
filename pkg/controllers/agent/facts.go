// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// facts are what is known of a claim when it is decided what is done about it. They come from watches and caches; no API server is
// asked. The exception is unauthenticated: credentials are read from the workload cluster when they are used and the last look is old.
type facts struct {
	request.Request

	// claim is the claim in the workload cluster. It is shared, and replaced by what a write returned.
	claim *unstructured.Unstructured

	// vanished says that the claim is gone, and claim is its last state.
	vanished bool

	// protected says that the claim had our finalizer when the reconcile began, so that a creation for it may have been sent before.
	protected bool

	// us is the source of the claim, as the hub's object shall name it, and home is where that source is now, as far as it is known.
	us   ownership.Source
	home ownership.Residence

	// namespace is the claim's namespace in the workload cluster, without what the agent does not use of it; nil if it is not
	// known, or is gone.
	namespace *unstructured.Unstructured

	// class is the cluster's EnrollmentClass; nil if there is none of that name.
	class     *fleetv1alpha1.EnrollmentClass
	className string

	// publishedKnown is whether it is known what the hub publishes, published whether that is the kind, in the version that the claim
	// is followed in, and offered whether it is published to the cluster. form is what it is published as.
	publishedKnown, published, offered bool
	form                               crossplane.Form

	// pairing is what decides where the claim goes; nil if that is not known, and unpaired is why, if a user should know.
	pairing  *pairing
	unpaired *condition.Problem

	// target is where in the hub the claim's object would be created; nil if untargeted says why nowhere.
	target     *ownership.Place
	untargeted *condition.Problem

	// unauthenticated is why nobody's rights can be used in the hub, and retryAfter when to look again.
	unauthenticated *condition.Problem
	retryAfter      time.Duration

	hub hubFacts
}

// hubFacts are what the watch of the hub knows of the claim's object.
type hubFacts struct {
	// known is whether the objects of the kind are known, and unknown is why not, if a user should know.
	known   bool
	unknown *condition.Problem

	// gone is whether the hub has no definition of the kind any more, and hence no objects.
	gone bool

	// target is the object at the place where the claim's would be created, and recorded the one where the claim records its object.
	target, recorded *unstructured.Unstructured

	// named are the objects that name the claim's source, wherever they are. They are looked for only if the claim's object is not where it
	// is recorded or should be.
	named []namedObject
}

// namedObject is an object of the hub that names a source. The object is nil if it is not known.
type namedObject struct {
	place  ownership.Place
	object *unstructured.Unstructured
}

// scope is what the steps of one reconcile share.
type scope struct {
	facts

	// workload is the cluster of the claim.
	workload *view.Cluster

	// inTheWay are the Secrets of others that were found where the claim's should be.
	inTheWay []types.NamespacedName
}

// isGoing is whether the claim is being deleted or is gone.
func (f *facts) isGoing() bool { return f.vanished || f.claim.GetDeletionTimestamp() != nil }

// isDisabled is whether the class has the claims of its clusters left alone.
func (f *facts) isDisabled() bool {
	return f.class != nil && f.class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled
}

// ownership is whose an object of the hub is, from the point of view of the claim.
func (f *facts) ownership(obj metav1.Object) ownership.State {
	owned := ownership.Of(true, obj, f.us)
	if owned == ownership.Ours && f.home.Succeeds(obj) {
		return ownership.Former
	}
	return owned
}

// owns is whether an object of the hub is the claim's.
func (f *facts) owns(obj metav1.Object) bool { return f.ownership(obj) == ownership.Ours }

// placeIn is the claim's place in a namespace of the hub.
func (f *facts) placeIn(namespace string) ownership.Place {
	return ownership.Place{Kind: f.Kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: f.Name}}
}

// recordedPlace is where the claim records its object, if it does.
func (f *facts) recordedPlace() (ownership.Place, bool) {
	was, ok := ownership.RecordOf(f.claim)
	return f.placeIn(was.Namespace), ok
}

// own is the claim's object in the hub, as far as it is known: the one that it records, else the one where it should be if the kind is
// offered.
func (f *facts) own() *unstructured.Unstructured {
	if was, ok := ownership.RecordOf(f.claim); ok && f.hub.recorded != nil && f.hub.recorded.GetUID() == was.UID && f.owns(f.hub.recorded) {
		return f.hub.recorded
	}
	if f.offered && f.hub.target != nil && f.owns(f.hub.target) {
		return f.hub.target
	}
	return nil
}

// elsewhere is where in the hub the claim's object is, if that is not the place where it should be; nil if it is there, or
// nowhere.
//
// What the claim records decides. An object elsewhere that names the claim's source is a stray (package view counts strays). Only a
// claim without a record of an object that still exists, as from before there were records, is more careful: an object anywhere that
// names its source keeps another one from being created, and nothing else.
func (f *facts) elsewhere() *namedObject {
	if at, ok := f.recordedPlace(); ok && f.hub.recorded != nil && f.owns(f.hub.recorded) {
		if at == *f.target {
			return nil
		}
		return &namedObject{place: at, object: f.hub.recorded}
	}
	if f.hub.target != nil && f.owns(f.hub.target) {
		return nil
	}
	for _, n := range f.hub.named {
		if n.place != *f.target && (n.object == nil || f.owns(n.object)) {
			return &n
		}
	}
	return nil
}

// recordedPlaces are where in the hub the claim's object can be, without the place where it would be created: where the claim
// records it, else wherever an object names the claim's source.
func (f *facts) recordedPlaces() []namedObject {
	if at, ok := f.recordedPlace(); ok {
		return []namedObject{{place: at, object: f.hub.recorded}}
	}
	return f.hub.named
}

// look finds out what is known of what a request is about. It returns nil if there is nothing to do.
func (r *requirementReconciler) look(ctx context.Context, req request.Request) (*scope, error) {
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	claim, vanished, err := r.claimOf(w, req)
	if err != nil || claim == nil {
		return nil, err
	}
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return nil, nil //nolint:nilnil // A change of the cluster makes a new request.
	}

	s := &scope{workload: w, facts: facts{
		Request:   req,
		us:        ownership.Source{Identifier: cluster.EffectiveIdentifier(), Namespace: req.Namespace},
		claim:     claim,
		className: cluster.Enrolment.Class,
		vanished:  vanished,
		protected: w.BearsFinalizer(claim),
		home:      ownership.Residence{Cluster: types.UID(cluster.UID)},
	}}
	if s.namespace, err = w.Watcher.Get(view.NamespaceKind, types.NamespacedName{Name: req.Namespace}); err == nil {
		s.home.Namespace = s.namespace.GetUID()
	}
	if s.class, err = connection.Class(ctx, r.classes, s.className); err != nil {
		return nil, err
	}
	p, published, known := r.hub.Publication(req.Kind.GroupResource().String())
	s.publishedKnown, s.form = known, p.Form
	s.published = published && p.Kind == req.Kind
	s.offered = s.published && s.class != nil && view.Offers(s.class.Spec.Agent, req.Kind.Group)
	if s.isDisabled() {
		return s, nil // Nothing is done in the hub.
	}
	if s.class != nil {
		if err := r.pair(ctx, s); err != nil {
			return nil, err
		}
	}
	r.seeHub(s)
	return s, nil
}

// claimOf returns the claim that a request is about, and whether it is the last state of one that vanished; nil if there is
// nothing to do.
func (r *requirementReconciler) claimOf(w *view.Cluster, req request.Request) (claim *unstructured.Unstructured, vanished bool, err error) {
	f, ok := w.Followed(req.Kind.GroupResource().String())
	if !ok || f.Kind != req.Kind {
		r.forget(req)
		return nil, false, nil
	}
	claim, err = w.Watcher.Get(req.Kind, req.NamespacedName)
	last := r.vanishedClaim(req, claim != nil)
	switch {
	case errors.Is(err, kindwatch.ErrNotSynced), errors.Is(err, kindwatch.ErrNotWatched):
		return nil, false, nil // Its coming makes a new request.
	case client.IgnoreNotFound(err) != nil:
		return nil, false, err
	case err != nil && last != nil:
		return last, true, nil
	case err != nil, f.DeletionsOnly && (claim.GetDeletionTimestamp() == nil || !w.BearsFinalizer(claim)):
		// It is gone, or not ours to touch.
		r.forgetAllButVanished(req)
		return nil, false, nil //nolint:nilerr // Not to be there is no error.
	}
	return claim, false, nil
}

// seeHub finds out what the watch of the hub knows of the claim's object. Waiting for a change at the target begins before looking,
// so that nothing happens between the two unseen. Whoever turns out to have no reason to wait stops.
func (r *requirementReconciler) seeHub(s *scope) {
	if s.target != nil && !s.isGoing() {
		r.hub.Wait(*s.target, s.Request)
	}
	// The state says that the index of origins is complete, too: the objects of a list are known to the watcher before it has
	// reported them.
	state, _ := r.hub.Watcher.State(s.Kind)
	s.hub.known = state == kindwatch.StateSynced
	get := func(place ownership.Place) *unstructured.Unstructured {
		obj, err := r.hub.Watcher.Get(place.Kind, place.NamespacedName)
		if err != nil {
			s.hub.known = s.hub.known && apierrors.IsNotFound(err)
			return nil
		}
		return obj
	}
	if s.target != nil {
		s.hub.target = get(*s.target)
	}
	recorded, ok := s.recordedPlace()
	if ok {
		s.hub.recorded = get(recorded)
	}
	isRecorded := s.hub.recorded != nil && s.owns(s.hub.recorded)
	// What else names the source makes no difference to a claim whose object is where it should be.
	if isThere := s.hub.target != nil && s.owns(s.hub.target); !isRecorded && (s.isGoing() || !isThere) {
		for _, place := range r.hub.PlacesOf(ownership.Origin{Source: s.us, Kind: s.Kind, Name: s.Name}) {
			s.hub.named = append(s.hub.named, namedObject{place: place, object: get(place)})
		}
	}
	if !s.hub.known {
		s.hub.unknown, s.hub.gone = r.unknown(s.Kind), r.goneForGood(s.Kind)
	}
}
