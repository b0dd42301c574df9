// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A finalizer does not always keep an object. An API server decides whether a deletion has to wait when it begins, and does
// not look again before it deletes: a finalizer that is added in between is written, and the object goes all the same. For
// us that is a claim that is deleted right after it was created, whose object in the hub nobody would delete any more.
//
// Such an end can be told from every other: the watch reports the deletion of an object that bears our finalizer and no
// deletion timestamp. An object that waited for a finalizer has the timestamp, even if somebody removed the finalizer by
// force, which we respect: then the object in the hub stays. An object that is merely missing from a list says nothing, and
// the absence of a claim never does: a cluster that replaces a lost one under the same identifier begins empty.

// vanished is whether an event tells such an end of a claim.
func vanished(e kindwatch.Event, owner hubidentity.Owner) bool {
	return e.Type == kindwatch.Deleted && !e.Relisted && e.Object.GetDeletionTimestamp() == nil &&
		owner.IsProtected(e.Object)
}

// vanish remembers the last state of a claim until its object in the hub is deleted.
func (r *requirementReconciler) vanish(req request.Request, last *unstructured.Unstructured) {
	r.ledger.edit(req, func(e *entry) { e.vanished = last })
}

// vanishedClaim returns the last state of a claim that vanished. One that exists again takes its object in the hub over.
func (r *requirementReconciler) vanishedClaim(req request.Request, exists bool) *unstructured.Unstructured {
	if exists {
		r.ledger.edit(req, func(e *entry) { e.vanished = nil })
	}
	return r.ledger.of(req).vanished
}

// deleteVanished deletes or releases the object in the hub of a claim that vanished. There is nobody to tell about it.
func (r *requirementReconciler) deleteVanished(ctx context.Context, s *scope) (outcome, error) {
	if s.class != nil && s.class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled {
		r.forget(s.Request)
		return outcome{silent: true}, nil
	}
	if state, _ := r.hub.Watcher.State(s.Kind); state != kindwatch.StateSynced && !r.goneForGood(s.Kind) {
		return outcome{silent: true, retryAfter: condition.SlowRetry()}, nil
	}
	policy, p := deletionPolicy(s.class, s.className, s.claim)
	if p != nil {
		// Nobody can correct it any more, so that what can be undone is done.
		policy = fleetv1alpha1.DeletionPolicyOrphan
	}
	places, err := r.places(ctx, s)
	if err != nil {
		return outcome{}, err
	}
	for _, place := range places {
		o, err := r.removeAt(ctx, s, place, policy)
		if err != nil {
			return outcome{}, err
		}
		if o != nil {
			return outcome{silent: true, retryAfter: o.retryAfter}, nil
		}
	}
	if left := r.awaitsCreation(s); left > 0 {
		return outcome{silent: true, retryAfter: left}, nil
	}
	r.forget(s.Request)
	return outcome{silent: true}, nil
}
