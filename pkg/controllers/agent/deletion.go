// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// deleteAt deletes the claim's object at a place of the hub. It returns nothing if none is left there.
func (r *requirementReconciler) deleteAt(ctx context.Context, s *scope, place ownership.Place) (*outcome, error) {
	waiting := plan.Deleting(s.Kind.Kind, place.Namespace, s.Name)
	known, err := r.hub.Watcher.Get(place.Kind, place.NamespacedName)
	if err == nil && s.Owns(known) && known.GetDeletionTimestamp() != nil {
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
	if live == nil || !s.Owns(live) {
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
	if managerErr == nil && (seen == nil || !s.Owns(seen)) {
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

// release lets the claim go. It returns why it cannot.
func (r *requirementReconciler) release(ctx context.Context, s *scope) (*outcome, error) {
	claim := s.workload.Unprotected(s.Claim)
	ownership.WithoutRecord(claim)
	if err := patchClaim(ctx, s, claim, writeFinalizer, r.metrics); client.IgnoreNotFound(err) != nil {
		if p := reason.OfWorkload(err, "change the finalizers of this claim", reason.ReasonWorkloadRejected); p != nil {
			return &outcome{problem: p, retryAfter: condition.SlowRetry()}, nil
		}
		return nil, fmt.Errorf("cannot remove the finalizer of %s: %w", s.Request, err)
	}
	r.forget(s.Request)
	return nil, nil //nolint:nilnil // The comment says so.
}
