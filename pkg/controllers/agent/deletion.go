// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
)

// deleteAt deletes the claim's object at a place of the hub. The error says what it waits for, and the object is the
// claim's, as it is now. There is no error if none is left there.
func (r *requirementReconciler) deleteAt(
	ctx context.Context,
	s *downstream.Scope,
	place ownership.Place,
) (*unstructured.Unstructured, error) {
	waiting := plan.Deleting(s.Kind.Kind, place.Namespace, s.Name)
	// The claim waits for the place since the step began: an end that the watch reported before is no event any more.
	known, err := r.whole(ctx, s, place)
	if err == nil && s.IsOwn(known) && known.GetDeletionTimestamp() != nil {
		return known, waiting // Its deletion is an event.
	}
	live, err := r.getOwn(ctx, s, place)
	if apierror.IsMissingObject(err) || err == nil && !s.IsOwn(live) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	r.hub.Observe(place, live)
	if live.GetDeletionTimestamp() != nil {
		return live, waiting
	}

	if left := awaitsBinding(live, r.clock.Now(), unboundPatience); left > 0 {
		return live, waiting.RetriedAfter(left) // Its first status is an event.
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err = r.hubClient.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version})
	switch {
	case err == nil:
		r.hub.MarkDeleted(place, live)
		r.metrics.Wrote(s.ClusterName, downstream.WriteDeletion)
	case apierror.IsMissingObject(err): // The watch will report it.
	default:
		err = hubaccess.HubError(err, "delete", s.Kind.GroupResource().String(), place.Namespace)
		return live, fmt.Errorf("cannot delete %s %q in the hub: %w", place.Kind, place.NamespacedName, err)
	}
	return live, waiting
}

// getOwn reads the claim's object at a place of the hub. An identity that may not read there is unlikely to have
// created something there, and a permanent error would make the claim undeletable. So the manager checks whether there
// is something.
func (r *requirementReconciler) getOwn(
	ctx context.Context,
	s *downstream.Scope,
	place ownership.Place,
) (*unstructured.Unstructured, error) {
	live, err := r.getHub(ctx, place)
	if apierrors.IsForbidden(err) && !hubaccess.AsManager(ctx) {
		seen, managerErr := r.getHub(r.identities.Manager.In(ctx), place)
		if apierror.IsMissingObject(managerErr) || managerErr == nil && !s.IsOwn(seen) {
			return seen, managerErr
		}
	}
	if err == nil || apierror.IsMissingObject(err) {
		return live, err
	}
	return nil, hubaccess.HubError(err, "get", place.Kind.GroupResource().String(), place.Namespace)
}

// release removes the claim's finalizer, and not again in the same state: the cluster's answer is no newer one if it
// deletes the claim.
func (r *requirementReconciler) release(ctx context.Context, s *downstream.Scope) error {
	state := index.NewVersion(s.Claim)
	if r.ledger.Entry(s.ObjectRequest).Released == state {
		return nil // Its deletion is an event.
	}
	if err := r.reportHeld(ctx, s); err != nil {
		if hubaccess.IsUnanswered(err) || hubaccess.IsConflict(err) {
			return err
		}
		log.FromContext(ctx).Error(err, "Cannot report what holds a deleted claim")
	}
	claim := s.Workload.Unprotected(s.Latest())
	ownership.WithoutRecord(claim)
	if err := downstream.PatchClaim(ctx, s, claim, downstream.WriteFinalizer, r.metrics); client.IgnoreNotFound(err) != nil {
		err = hubaccess.WorkloadError(err, "change the finalizers of this claim", fleetv1alpha1.ReasonWorkloadRejected)
		return fmt.Errorf("cannot remove the finalizer of %s: %w", s.ObjectRequest, err)
	}
	r.forget(s.ObjectRequest)
	if !s.Workload.BearsFinalizer(s.Latest()) { // The cluster may answer NotFound although it is there, or keep it.
		r.ledger.Edit(s.ObjectRequest, func(e *index.Entry) { e.Released = state })
	}
	return nil
}

// reportHeld says of a claim that is about to be released what holds it from then on: without our finalizer its status
// is never written again. A claim that nothing else holds is gone with the finalizer, and costs no write. Ready stays
// as it was: it is Crossplane's.
func (r *requirementReconciler) reportHeld(ctx context.Context, s *downstream.Scope) error {
	others := slices.DeleteFunc(s.Workload.Unprotected(s.Claim).GetFinalizers(), func(f string) bool {
		// The garbage collector removes its own in a moment.
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if s.Claim.GetDeletionTimestamp() == nil || len(others) == 0 {
		return nil
	}
	_, err := r.reports.Report(ctx, s, downstream.Outcome{Plan: plan.Plan{Problem: plan.Held(others)}})
	return err
}

// releaseAt releases the claim's object at a place of the hub. The object beside an error is the claim's, as it is now.
// It reads live, because the watch drops managedFields, and writes only if nothing has changed since.
func (r *requirementReconciler) releaseAt(
	ctx context.Context,
	s *downstream.Scope,
	place ownership.Place,
) (*unstructured.Unstructured, error) {
	live, err := r.getOwn(ctx, s, place)
	if apierror.IsMissingObject(err) || err == nil && !s.IsOwn(live) {
		return live, nil
	}
	if err != nil {
		return nil, err
	}
	out := ownership.Released(live, s.Source)
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	err = r.hubClient.Patch(ctx, out, patch, client.FieldOwner(fleetv1alpha1.FieldManager))
	if apierror.IsMissingObject(err) {
		return live, nil
	}
	if err != nil {
		err = hubaccess.HubError(err, "patch", place.Kind.GroupResource().String(), place.Namespace)
		return live, fmt.Errorf("cannot release %s %q in the hub: %w", place.Kind, place.NamespacedName, err)
	}
	r.observe(s, place, out)
	r.metrics.Wrote(s.ClusterName, downstream.WriteRelease)
	return out, nil
}

// removeAt deletes or releases the claim's object at a step's place, as its policy says. There is no error if the claim
// has none there any more.
func (r *requirementReconciler) removeAt(ctx context.Context, s *downstream.Scope, st plan.Step) (*unstructured.Unstructured, error) {
	if st.Policy == fleetv1alpha1.DeletionPolicyOrphan {
		return r.releaseAt(ctx, s, st.At)
	}
	return r.deleteAt(ctx, s, st.At)
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
