// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// delete lets a claim go once it is gone from the hub.
//
// It is deleted, or released, as the policy says, where the claim records it and where it would be created now. Objects that
// name another source, or none, are not touched, nor are those that name the claim's and are somewhere else. The decision that
// nothing is left is made on a live read: the watch may not know yet what was created a moment ago.
func (r *requirementReconciler) delete(ctx context.Context, s *scope) (outcome, error) {
	r.hub.StopWaiting(s.Request)
	if !s.workload.BearsFinalizer(s.claim) {
		r.forget(s.Request)
		return outcome{silent: true}, nil
	}
	if s.class != nil && s.class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return r.release(ctx, s)
	}
	if state, _ := r.hub.Watcher.State(s.Kind); state != kindwatch.StateSynced {
		if r.goneForGood(s.Kind) {
			return r.release(ctx, s)
		}
		p := r.unknown(s.Kind)
		return outcome{silent: p == nil, problem: p}, nil
	}

	policy, p := deletionPolicy(s.class, s.className, s.claim)
	if p != nil {
		return outcome{problem: p}, nil
	}
	places, err := r.places(ctx, s)
	if err != nil {
		if p := problemOf(err, "list", s.Kind.GroupResource().String(), metav1.NamespaceAll); p != nil {
			return outcome{problem: p, retryAfter: condition.SlowRetry()}, nil
		}
		return outcome{}, err
	}
	for _, place := range places {
		o, err := r.removeAt(ctx, s, place, policy)
		if err != nil || o != nil {
			return deref(o), err
		}
	}
	if left := r.awaitsCreation(s); left > 0 {
		return outcome{silent: true, retryAfter: left}, nil
	}
	return r.release(ctx, s)
}

// places are where in the hub the claim's object can be: where the claim records it, and where the class says that it would be
// created. A claim without a record has its object wherever the watch knows one that names its source; if there is no class
// to say where it would be created either, the hub is asked for every object of that name.
func (r *requirementReconciler) places(ctx context.Context, s *scope) ([]ownership.Place, error) {
	places := r.recordedPlaces(s)
	if s.pairing != nil {
		if target, p := s.pairing.target(); p == nil {
			key := ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: target, Name: s.Name}}
			if !slices.Contains(places, key) {
				places = append(places, key)
			}
			return places, nil
		}
	}
	if _, recorded := ownership.RecordOf(s.claim); recorded {
		return places, nil
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(s.Kind.GroupVersion().WithKind(s.Kind.Kind + "List"))
	// What is looked for is what names this claim as its source, and nothing else of what is found is told.
	if err := r.hubReader.List(r.identities.Manager.In(ctx), live, client.MatchingFields{metav1.ObjectNameField: s.Name}); err != nil {
		return nil, fmt.Errorf("cannot list %s in the hub: %w", s.Kind, err)
	}
	for i := range live.Items {
		key := ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: live.Items[i].Namespace, Name: s.Name}}
		if s.owns(&live.Items[i]) && !slices.Contains(places, key) {
			places = append(places, key)
		}
	}
	return places, nil
}

// deleteAt deletes the claim's object at a place of the hub. It returns nothing if none is left there.
func (r *requirementReconciler) deleteAt(ctx context.Context, s *scope, place ownership.Place) (*outcome, error) {
	waiting := deleting(s.Kind.Kind, place.Namespace, s.Name)
	known, err := r.hub.Watcher.Get(place.Kind, place.NamespacedName)
	if err == nil && s.owns(known) && known.GetDeletionTimestamp() != nil {
		// Its going is an event.
		return &outcome{hub: known, problem: waiting}, nil
	}
	live, err := r.getOwn(ctx, s, place)
	if err != nil {
		if p := problemOf(err, "get", s.Kind.GroupResource().String(), place.Namespace); p != nil {
			return &outcome{problem: p, retryAfter: condition.SlowRetry()}, nil
		}
		return nil, err
	}
	if live == nil || !s.owns(live) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	r.hub.Observe(place, live)
	if live.GetDeletionTimestamp() != nil {
		return &outcome{hub: live, problem: waiting}, nil
	}

	if left := awaitsBinding(live, r.clock.Now(), unboundPatience); left > 0 {
		// Its first status is an event.
		return &outcome{hub: live, problem: waiting, retryAfter: left}, nil
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err = r.hubClient.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case err == nil:
		r.metrics.wrote(s.ClusterName, writeDeletion)
	case isMissingObject(err):
	case problemOf(err, "delete", s.Kind.GroupResource().String(), place.Namespace) != nil:
		return &outcome{
			hub: live, problem: problemOf(err, "delete", s.Kind.GroupResource().String(), place.Namespace), retryAfter: condition.SlowRetry(),
		}, nil
	default:
		return nil, fmt.Errorf("cannot delete %s %q in the hub: %w", place.Kind, place.NamespacedName, err)
	}
	return &outcome{hub: live, problem: waiting}, nil
}

// getOwn reads what the claim has at a place of the hub. An identity that may not look there can hardly have put something
// there, and a claim that says so for ever could never be deleted; so the manager looks whether there is something.
func (r *requirementReconciler) getOwn(ctx context.Context, s *scope, place ownership.Place) (*unstructured.Unstructured, error) {
	live, err := r.getHub(ctx, place)
	if !apierrors.IsForbidden(err) || hubaccess.AsManager(ctx) {
		return live, err
	}
	seen, managerErr := r.getHub(r.identities.Manager.In(ctx), place)
	if managerErr == nil && (seen == nil || !s.owns(seen)) {
		return nil, nil //nolint:nilnil // There is none.
	}
	return nil, err
}

// goneForGood is whether the hub has no definition of a kind any more. Then it has no objects of it: an API server deletes
// them before it lets the definition go. That a kind is merely not served says nothing about its objects.
func (r *requirementReconciler) goneForGood(kind kindwatch.Kind) bool {
	_, err := r.hub.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: kind.GroupResource().String()})
	return apierrors.IsNotFound(err)
}

// release lets the claim go.
func (r *requirementReconciler) release(ctx context.Context, s *scope) (outcome, error) {
	claim := s.workload.Unprotected(s.claim)
	ownership.WithoutRecord(claim)
	if err := r.patchClaim(ctx, s, claim, writeFinalizer); client.IgnoreNotFound(err) != nil {
		if p := reason.OfWorkload(err, "change the finalizers of this claim", reason.ReasonWorkloadRejected); p != nil {
			return outcome{problem: p, retryAfter: condition.SlowRetry()}, nil
		}
		return outcome{}, fmt.Errorf("cannot remove the finalizer of %s: %w", s.Request, err)
	}
	r.forget(s.Request)
	return outcome{silent: true}, nil
}
