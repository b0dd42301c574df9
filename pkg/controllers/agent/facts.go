// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// hubKindProblem returns why the hub's claims of a kind are not known, or nil if they soon will be.
func hubKindProblem(h *index.Hub, kind kindwatch.Kind) *condition.Error {
	switch state, _ := h.Watcher.State(kind); state {
	case kindwatch.StateNotServed:
		return &condition.Error{Reason: fleetv1alpha1.ReasonKindNotServed, Message: fmt.Sprintf("The hub does not serve %s now.", kind.GroupResource())}
	case kindwatch.StateForbidden:
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonHubForbidden,
			Message: fmt.Sprintf("Masthead lacks the right to list and watch %s in the hub.", kind.GroupResource()),
		}
	case kindwatch.StateStale:
		return &condition.Error{
			Reason:  fleetv1alpha1.ReasonKindNotServed,
			Message: fmt.Sprintf("The hub has not let Masthead list and watch %s for some minutes.", kind.GroupResource()),
		}
	case kindwatch.StateSynced, kindwatch.StateSyncing, kindwatch.StateUnwatched, kindwatch.StateTooLarge:
		// The hub's watcher has no limit, so that nothing is too large.
	}
	return nil
}

// goneForGood reports whether the hub no longer has a definition of a kind. Then it has no objects of it: an API server
// deletes them before the definition. A kind that is merely not served says nothing about its objects.
func goneForGood(h *index.Hub, kind kindwatch.Kind) bool {
	_, err := h.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: kind.GroupResource().String()})
	return apierrors.IsNotFound(err)
}

// gatherFacts gathers the facts about a request. It returns a PendingError if there is nothing to do.
func (r *requirementReconciler) gatherFacts(ctx context.Context, req multicluster.ObjectRequest) (*downstream.Scope, error) {
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		return nil, condition.PendingError{}
	}
	claim, vanished, err := r.getClaim(w, req)
	if err != nil {
		return nil, err
	}
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return nil, condition.PendingError{} // A change of the cluster makes a new request.
	}

	s := &downstream.Scope{Workload: w, Facts: plan.Facts{
		ObjectRequest: req,
		Source:        ownership.Source{Identifier: cluster.EffectiveIdentifier(), Namespace: req.Namespace},
		Claim:         claim,
		ClassName:     cluster.Enrolment.Class,
		Vanished:      vanished,
		Protected:     w.BearsFinalizer(claim),
		Residence:     ownership.Residence{Cluster: types.UID(cluster.UID)},

		Unresolved: unresolved(claim),
	}}
	if s.NamespaceObject, err = w.Watcher.Get(index.NamespaceKind, types.NamespacedName{Name: req.Namespace}); err == nil {
		s.Residence.Namespace = s.NamespaceObject.GetUID()
	}
	if s.Class, err = connection.Class(ctx, r.classes, s.ClassName); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	findPublication(r.hub, w, s)
	if s.IsDisabled() {
		return s, nil // Nothing is done in the hub.
	}
	if s.Class != nil {
		if err := r.pair(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := r.observeHub(ctx, s); err != nil {
		return nil, err
	}
	r.takeRoom(ctx, s)
	return s, nil
}

// findPublication looks up how the hub publishes the kind of a claim to its cluster.
func findPublication(h *index.Hub, w *index.Cluster, s *downstream.Scope) {
	p, published, known := h.Publication(s.Kind.GroupResource().String())
	s.HubKind, s.Form = h.HubKind(s.Kind), p.Form
	s.Published = published && s.HubKind == s.Kind
	// After a change of the hub's version, the definition decides whether the claims follow it, and nothing is reported
	// before.
	f, _ := w.Followed(s.Kind.GroupResource().String())
	s.PublishedKnown = known && (s.HubKind == s.Kind || f.Retained)
	s.Offered = s.Published && s.Class != nil && index.Offers(s.Class.Spec.Agent, s.Kind.Group)
}

// takeRoom finds out whether the class allows another object in the hub, for a claim that may need one. The end of the
// reconcile leaves the room.
func (r *requirementReconciler) takeRoom(ctx context.Context, s *downstream.Scope) {
	if s.Class == nil || s.Target == nil || s.IsGoing() || !s.Hub.Known || s.Hub.Target != nil && s.Owns(s.Hub.Target) {
		return
	}
	agent := s.Class.Spec.Agent
	limits := index.Limits{Cluster: agent.MaxClaims, Namespace: agent.MaxClaimsPerNamespace}
	if limits == (index.Limits{}) {
		return
	}
	known := map[types.NamespacedName]bool{}
	leads := func(source, target string) bool {
		key := types.NamespacedName{Namespace: source, Name: target}
		if _, ok := known[key]; !ok {
			labels, err := r.hubNamespaceLabels(ctx, agent.AllowedTargetNamespaces, target)
			p := *s.Pairing
			p.Allowed = func(string) bool {
				return err != nil || connection.Allows(agent.AllowedTargetNamespaces, target, labels)
			}
			known[key] = p.Leads(source, target)
		}
		return known[key]
	}
	if full, ofNamespace := r.hub.TakeRoom(newOrigin(s.ObjectRequest, s.Source.Identifier), limits, leads); full != nil {
		s.Full = plan.Full(s.ClassName, *full, ofNamespace)
	}
}

// newOrigin returns the origin that a claim's hub object names.
func newOrigin(req multicluster.ObjectRequest, identifier string) ownership.Origin {
	return ownership.Origin{
		Source: ownership.Source{Identifier: identifier, Namespace: req.Namespace}, Resource: req.Kind.GroupResource(), Name: req.Name,
	}
}

// getClaim returns the claim of a request, and whether it is the last state of a vanished one; a PendingError if there
// is nothing to do.
func (r *requirementReconciler) getClaim(
	w *index.Cluster, req multicluster.ObjectRequest,
) (claim *unstructured.Unstructured, vanished bool, err error) {
	f, ok := w.Followed(req.Kind.GroupResource().String())
	if !ok || f.Kind != req.Kind {
		r.forget(req)
		return nil, false, condition.PendingError{}
	}
	claim, err = w.Watcher.Get(req.Kind, req.NamespacedName)
	last := r.ledger.Entry(req).Vanished
	switch {
	case errors.Is(err, kindwatch.ErrNotSynced), errors.Is(err, kindwatch.ErrNotWatched):
		return nil, false, condition.PendingError{} // Its creation makes a new request.
	case client.IgnoreNotFound(err) != nil:
		return nil, false, err
	case last != nil:
		return last, true, nil
	case err != nil, f.DeletionsOnly && (claim.GetDeletionTimestamp() == nil || !w.BearsFinalizer(claim)):
		// It is gone, or not managed by Masthead.
		r.forgetAllButVanished(req)
		return nil, false, condition.PendingError{}
	}
	return claim, false, nil
}

// observeHub looks up the claim's object in the hub's watch. It starts waiting for changes at the target before the
// lookup, so that none is missed in between. A claim without a reason to wait stops waiting later.
func (r *requirementReconciler) observeHub(ctx context.Context, s *downstream.Scope) error {
	if s.Target != nil && !s.IsGoing() {
		r.hub.Wait(*s.Target, s.ObjectRequest)
	}
	// The state implies that the index of origins is complete, too: the watcher has the objects of a list before it has
	// reported them.
	state, _ := r.hub.Watcher.State(s.HubKind)
	s.Hub.Known = state == kindwatch.StateSynced
	var err error
	if s.Target != nil {
		if s.Hub.Target, err = r.observed(ctx, s, *s.Target); err != nil {
			return err
		}
	}
	if recorded, ok := s.RecordedPlace(); ok {
		if s.Hub.Recorded, err = r.observed(ctx, s, recorded); err != nil {
			return err
		}
	}
	// Other objects do not matter to a claim whose object is where it should be.
	if s.IsGoing() || s.Own() == nil {
		if err = r.findElsewhere(ctx, s); err != nil {
			return err
		}
	}
	if !s.Hub.Known && s.Hub.Unknown == nil {
		s.Hub.Unknown, s.Hub.Gone = hubKindProblem(r.hub, s.HubKind), goneForGood(r.hub, s.HubKind)
	}
	return nil
}

// findElsewhere looks up the claim's objects that are neither at its target nor where it records one.
func (r *requirementReconciler) findElsewhere(ctx context.Context, s *downstream.Scope) error {
	recorded, _ := s.RecordedPlace()
	for _, place := range r.hub.Places(newOrigin(s.ObjectRequest, s.Source.Identifier)) {
		place = s.PlaceIn(place.Namespace) // The hub's version may have changed since.
		known := place == recorded || s.Target != nil && place == *s.Target
		// The metadata says whose it is, and is kept of each object: strays are not read.
		if obj, err := r.hub.Metadata(place); known || err != nil || !s.IsOwn(obj) {
			continue
		}
		obj, err := r.observed(ctx, s, place)
		if err != nil {
			return err
		}
		if obj != nil && s.IsOwn(obj) {
			s.Hub.Elsewhere = append(s.Hub.Elsewhere, plan.PlacedObject{Place: place, Object: obj})
		}
	}
	return nil
}

// observed returns the object at a place of the hub, or nil if there is none, or if that is unknown.
func (r *requirementReconciler) observed(ctx context.Context, s *downstream.Scope, place ownership.Place) (*unstructured.Unstructured, error) {
	obj, err := r.whole(ctx, s, place)
	if err == nil {
		return obj, confirmHome(ctx, s, obj)
	}
	s.Hub.Known = s.Hub.Known && apierrors.IsNotFound(err)
	if !apierrors.IsNotFound(err) && !errors.Is(err, kindwatch.ErrNotSynced) && !errors.Is(err, kindwatch.ErrNotWatched) {
		if s.Hub.Unknown = hubaccess.HubProblem(err, "get", s.Kind.GroupResource().String(), place.Namespace); s.Hub.Unknown == nil {
			return nil, err
		}
	}
	return obj, nil
}

// confirmHome reads the namespace of a claim that would take over an object made for another claim. The watch of
// namespaces may be behind, and the object may belong to an earlier namespace of that name.
func confirmHome(ctx context.Context, s *downstream.Scope, obj *unstructured.Unstructured) error {
	if !s.Owns(obj) || ownership.IsFor(obj, s.Claim) {
		return nil
	}
	// The agent may list namespaces, and get none.
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(index.NamespaceKind.GroupVersion().WithKind("NamespaceList"))
	if err := s.Workload.Reader.List(ctx, list, client.MatchingFields{metav1.ObjectNameField: s.Namespace}); err != nil {
		return fmt.Errorf("cannot list namespace %q in cluster %q: %w", s.Namespace, s.ClusterName, hubaccess.MarkUnanswered(err))
	}
	for _, namespace := range list.Items { // Without one, the claim is gone, too. What was its own is removed.
		s.Residence.Namespace = namespace.GetUID()
	}
	return nil
}

// whole returns an object of the hub. One that the watch keeps little of is read from the hub if it names the claim's
// source: as the manager, like what the watch has.
func (r *requirementReconciler) whole(ctx context.Context, s *downstream.Scope, place ownership.Place) (*unstructured.Unstructured, error) {
	obj, err := r.hub.Get(place)
	if err != nil || !index.IsReduced(obj) || index.SourceOrZero(obj) != s.Source {
		return obj, err
	}
	live, err := r.getHub(r.identities.Manager.In(ctx), place)
	if err != nil {
		return nil, err
	}
	r.hub.Kept.ReadWhole(place, live)
	return live, nil
}
