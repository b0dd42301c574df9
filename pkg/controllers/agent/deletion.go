// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/metrics"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
)

// removeNamed deletes or releases all hub objects with the claim's name that name the claim as their source. Nothing
// else that the list returns is disclosed.
func (r *requirementReconciler) removeNamed(ctx context.Context, s *scope.Scope, policy fleetv1alpha1.DeletionPolicy) (*scope.Outcome, error) {
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(s.Kind.GroupVersion().WithKind(s.Kind.Kind + "List"))
	err := r.hubReader.List(r.identities.Manager.In(ctx), live, client.MatchingFields{metav1.ObjectNameField: s.Name})
	if err != nil {
		if p := answer.OfHub(err, "list", s.Kind.GroupResource().String(), metav1.NamespaceAll); p != nil {
			return &scope.Outcome{Problem: p, RetryAfter: condition.SlowRetry()}, nil
		}
		return nil, fmt.Errorf("cannot list %s in the hub: %w", s.Kind, err)
	}
	for i := range live.Items {
		if !s.Owns(&live.Items[i]) {
			continue
		}
		if stopped, err := r.removeAt(ctx, s, s.PlaceIn(live.Items[i].Namespace), policy); err != nil || stopped != nil {
			return stopped, err
		}
	}
	return nil, nil //nolint:nilnil // Nothing is left.
}

// deleteAt deletes the claim's object at a place of the hub. It returns nothing if none is left there.
func (r *requirementReconciler) deleteAt(ctx context.Context, s *scope.Scope, place ownership.Place) (*scope.Outcome, error) {
	waiting := plan.Deleting(s.Kind.Kind, place.Namespace, s.Name)
	known, err := r.whole(ctx, s, place)
	owned := err == nil && s.Owns(known)
	if owned && known.GetDeletionTimestamp() != nil {
		// Its deletion is an event.
		return &scope.Outcome{Hub: known, Problem: waiting}, nil
	}
	live, err := r.getOwn(ctx, s, place)
	if err != nil {
		if p := answer.OfHub(err, "get", s.Kind.GroupResource().String(), place.Namespace); p != nil {
			return &scope.Outcome{Problem: p, RetryAfter: condition.SlowRetry()}, nil
		}
		return nil, err
	}
	if live == nil && owned {
		r.hub.Gone(place, known) // It was cached before the live read.
	}
	if live == nil || !s.Owns(live) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	r.hub.Observe(place, live)
	if live.GetDeletionTimestamp() != nil {
		return &scope.Outcome{Hub: live, Problem: waiting}, nil
	}

	if left := awaitsBinding(live, r.clock.Now(), unboundPatience); left > 0 {
		// Its first status is an event.
		return &scope.Outcome{Hub: live, Problem: waiting, RetryAfter: left}, nil
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err = r.hubClient.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case err == nil:
		r.hub.Deleted(place, live)
		r.metrics.Wrote(s.ClusterName, metrics.WriteDeletion)
	case answer.IsMissingObject(err):
		r.hub.Gone(place, live)
	default:
		if p := answer.OfHub(err, "delete", s.Kind.GroupResource().String(), place.Namespace); p != nil {
			return &scope.Outcome{Hub: live, Problem: p, RetryAfter: condition.SlowRetry()}, nil
		}
		return nil, fmt.Errorf("cannot delete %s %q in the hub: %w", place.Kind, place.NamespacedName, err)
	}
	return &scope.Outcome{Hub: live, Problem: waiting}, nil
}

// getOwn reads the claim's object at a place of the hub. An identity that may not read there is unlikely to have
// created something there, and a permanent error would make the claim undeletable. So the manager checks whether there
// is something.
func (r *requirementReconciler) getOwn(ctx context.Context, s *scope.Scope, place ownership.Place) (*unstructured.Unstructured, error) {
	live, err := r.getHub(ctx, place)
	if !apierrors.IsForbidden(err) || hubaccess.AsManager(ctx) {
		return live, err
	}
	seen, managerErr := r.getHub(r.identities.Manager.In(ctx), place)
	if managerErr == nil && (seen == nil || !s.Owns(seen)) {
		return nil, nil //nolint:nilnil // There is none.
	}
	return nil, err
}

// release removes the claim's finalizer. It returns why it cannot.
func (r *requirementReconciler) release(ctx context.Context, s *scope.Scope) (*scope.Outcome, error) {
	claim := s.Workload.Unprotected(s.Claim)
	ownership.WithoutRecord(claim)
	if err := scope.PatchClaim(ctx, s, claim, metrics.WriteFinalizer, r.metrics); client.IgnoreNotFound(err) != nil {
		if p := reason.OfWorkload(err, "change the finalizers of this claim", reason.ReasonWorkloadRejected); p != nil {
			return &scope.Outcome{Problem: p, RetryAfter: condition.SlowRetry()}, nil
		}
		return nil, fmt.Errorf("cannot remove the finalizer of %s: %w", s.Request, err)
	}
	r.released(s.Request)
	r.forget(s.Request)
	return nil, nil //nolint:nilnil // The comment says so.
}

// awaitsCreation returns how long a claim's deletion must wait because an object could still be created for it. It is
// zero if the claim says that its object is being deleted: then none is being created.
func (r *requirementReconciler) awaitsCreation(s *scope.Scope) time.Duration {
	if shown := propagation.AgentSynced(s.Claim); shown != nil && shown["reason"] == reason.ReasonDeleting {
		return 0
	}
	return r.inFlight.Wait(s.Request)
}

// releaseAt releases the claim's object at a place of the hub. It returns nothing if the claim has none there any more.
// It reads live, because the watch drops managedFields, and writes only if nothing has changed since.
func (r *requirementReconciler) releaseAt(ctx context.Context, s *scope.Scope, place ownership.Place) (*scope.Outcome, error) {
	resource := s.Kind.GroupResource().String()
	live, err := r.getOwn(ctx, s, place)
	if err != nil {
		if p := answer.OfHub(err, "get", resource, place.Namespace); p != nil {
			return &scope.Outcome{Problem: p, RetryAfter: condition.SlowRetry()}, nil
		}
		return nil, err
	}
	if live == nil || !s.Owns(live) {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	out := ownership.Released(live, s.Us)
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	err = r.hubClient.Patch(ctx, out, patch, client.FieldOwner(fleetv1alpha1.FieldManager))
	switch {
	case err == nil:
	case answer.IsMissingObject(err):
		return nil, nil //nolint:nilnil // As above.
	case answer.OfHub(err, "patch", resource, place.Namespace) != nil:
		return &scope.Outcome{Hub: live, Problem: answer.OfHub(err, "patch", resource, place.Namespace), RetryAfter: condition.SlowRetry()}, nil
	default:
		return nil, fmt.Errorf("cannot release %s %q in the hub: %w", place.Kind, place.NamespacedName, err)
	}
	r.observe(s, place, out)
	r.metrics.Wrote(s.ClusterName, metrics.WriteRelease)
	return nil, nil //nolint:nilnil // As above.
}

// removeAt deletes or releases the claim's object at a place of the hub, as the policy says. It returns nothing if the
// claim has none there any more.
func (r *requirementReconciler) removeAt(
	ctx context.Context, s *scope.Scope, place ownership.Place, policy fleetv1alpha1.DeletionPolicy,
) (*scope.Outcome, error) {
	if policy == fleetv1alpha1.DeletionPolicyOrphan {
		return r.releaseAt(ctx, s, place)
	}
	return r.deleteAt(ctx, s, place)
}

// Crossplane loses the composite resource of a claim that is deleted during its creation: it looks for the composite in
// its cache, which does not have it yet, takes it for never created, and releases the claim (the claim reconciler in
// Crossplane v2, internal/controller/apiextensions/claim: meta.WasCreated). The provisioned resources are then
// orphaned.
//
// So a claim that Crossplane is reconciling for the first time is not deleted in the hub before it has a status. That
// takes a moment; a claim that gets no status is not kept for long.

// unboundPatience is the maximum age of a hub object that Crossplane is assumed to reconcile for the first time.
const unboundPatience = 10 * time.Second

// awaitsBinding returns how long the deletion of a hub object must wait until Crossplane knows the composite resource
// that it named in the object.
func awaitsBinding(hub *unstructured.Unstructured, now time.Time, patience time.Duration) time.Duration {
	named, _, _ := unstructured.NestedString(hub.Object, "spec", "resourceRef", "name")
	conditions, _, _ := unstructured.NestedSlice(hub.Object, "status", "conditions")
	if named == "" || len(conditions) > 0 {
		return 0
	}
	left := hub.GetCreationTimestamp().Add(patience).Sub(now)
	return min(max(left, 0), patience)
}
