// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// protect ensures that the claim has the finalizer. The claim also announces the hub namespace in which its object is
// about to be created.
func (r *requirementReconciler) protect(ctx context.Context, s *downstream.Scope, at ownership.Place) error {
	return hubaccess.WorkloadError(r.addFinalizer(ctx, s, at), "change the finalizers of this claim", fleetv1alpha1.ReasonWorkloadRejected)
}

// awaitNamespace makes a claim whose target namespace is missing wait for it.
func (r *requirementReconciler) awaitNamespace(s *downstream.Scope, target string, err error) {
	if p, ok := errors.AsType[*condition.Error](err); ok && p.Reason == fleetv1alpha1.ReasonTargetNamespaceMissing {
		r.hub.Wait(index.HubNamespace(target), s.ObjectRequest)
	}
}

// disclose returns what may be reported about another owner's object at a place of the hub; nothing if the object
// itself may be disclosed. The manager's watch saw it, so another identity learns of it only if it may read there:
// naming a namespace does not entitle a user to learn which names are taken in it, and who holds them.
//
// Without that right, the claim is handled as for a free name, with the same words, finalizer and announcement: a dry
// run asks the hub whether it would accept it. Only identities that may create there learn that they cannot.
func (r *requirementReconciler) disclose(ctx context.Context, s *downstream.Scope, key ownership.Place) error {
	if hubaccess.AsManager(ctx) {
		return nil
	}
	_, err := r.getHub(ctx, key)
	if err == nil || apierror.IsMissingObject(err) {
		return nil
	}
	unreadable := hubaccess.HubError(err, "get", s.Kind.GroupResource().String(), key.Namespace)
	if _, isProblem := errors.AsType[*condition.Error](unreadable); !isProblem {
		return unreadable
	}
	if refused := s.RefusesFreeName(); refused != nil {
		return refused.RetriedAfter(condition.SlowRetry())
	}
	refused := r.dryRunCreate(ctx, s, key)
	if refused == nil || apierrors.IsConflict(refused) {
		return unreadable
	}
	if _, isProblem := errors.AsType[*condition.Error](refused); isProblem {
		r.awaitNamespace(s, key.Namespace, refused)
		if err := r.protect(ctx, s, key); err != nil {
			return err
		}
	}
	return refused
}

// dryRunCreate asks the hub whether it would accept the claim at a place, without changing anything.
func (r *requirementReconciler) dryRunCreate(ctx context.Context, s *downstream.Scope, key ownership.Place) error {
	out := propagation.ForCreation(s.Intent(ctx, key, nil))
	err := r.hubClient.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), client.FieldOwner(ownership.FieldManager(s.Source.Identifier)), client.DryRunAll)
	if err == nil {
		return nil
	}
	return r.explain(ctx, s, key, nil, "create", err)
}

// errWatchBehind is why a claim is requeued after the watch turned out to be outdated.
var errWatchBehind = errors.New("the watch of the hub has not caught up") //nolint:gochecknoglobals // A constant.

// addFinalizer ensures that the claim cannot be deleted unnoticed, before anything is created for it. One write
// replaces a predecessor's finalizer by ours and announces a hub namespace. An earlier announcement that led to nothing
// is corrected.
func (r *requirementReconciler) addFinalizer(ctx context.Context, s *downstream.Scope, at ownership.Place) error {
	owner, announcement := s.Workload.Owner(), ownership.Announcement(s.Claim, at.Namespace)
	if announcement != "" && (s.Elsewhere() != nil || r.inFlight.WaitElsewhere(s.ObjectRequest, at, s.Protected) > 0) {
		announcement = "" // An object that is or may appear elsewhere would be taken for the announced one.
	}
	if owner.HasFinalizer(s.Claim) && announcement == "" {
		return nil
	}
	// A resolved conflict is cleared in the same write as the finalizer.
	claim := downstream.WithConflict(s.Latest(), "")
	if claim == nil {
		claim = s.Latest().DeepCopy()
	}
	claim.SetFinalizers(owner.Protected(claim.GetFinalizers()))
	if announcement != "" {
		ownership.SetRecord(claim, announcement)
	}
	if err := downstream.PatchClaim(ctx, s, claim, downstream.WriteFinalizer, r.metrics); err != nil {
		return fmt.Errorf("cannot add a finalizer to %s: %w", s.ObjectRequest, err)
	}
	return nil
}

// push applies the claim to the hub's object. It returns the object; beside an error, the one there was before.
func (r *requirementReconciler) push(
	ctx context.Context, s *downstream.Scope, key ownership.Place, hub *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	intent := s.Intent(ctx, key, hub)
	if hub != nil && propagation.Applied(intent, hub, s.Form) {
		return hub, nil
	}
	if hub != nil && r.ledger.Entry(s.ObjectRequest).Pushed == newPushedClaim(intent, hub) {
		// The API server mutates the object in a way that we cannot foresee, and another apply would change nothing.
		s.Altered = propagation.Altered(intent, hub, s.Form)
		return hub, nil
	}

	out, verb := propagation.ForCreation(intent), "create"
	if hub != nil {
		// We own the object and its fields. Changes made in the hub are overwritten: the claim in the workload cluster is the
		// source of truth.
		out, verb = propagation.ForUpdate(intent, hub), "patch"
	}
	if hub == nil {
		if left := r.inFlight.WaitElsewhere(s.ObjectRequest, key, s.Protected); left > 0 {
			return nil, condition.PendingError{After: left}
		}
	}
	update := apply.Update{Client: r.hubClient, Reader: r.hubReader, Manager: ownership.FieldManager(s.Source.Identifier)}
	err := update.Apply(ctx, out, hub)
	if hub == nil {
		r.inFlight.Sent(s.ObjectRequest, key, err)
	}
	if err != nil {
		return hub, r.explain(ctx, s, key, hub, verb, err)
	}
	s.Altered = propagation.Altered(intent, out, s.Form)
	r.observe(s, key, out)
	r.ledger.Edit(s.ObjectRequest, func(e *index.Entry) {
		e.Pushed = newPushedClaim(intent, out)
		r.metrics.ObservePushed(s.ClusterName, e, s.Changes, r.clock.Now())
	})
	r.metrics.Wrote(s.ClusterName, downstream.WriteClaim)
	return out, nil
}

// observe stores the hub's response to a conditional write of the claim's object, before the watch reports it.
func (r *requirementReconciler) observe(s *downstream.Scope, key ownership.Place, obj *unstructured.Unstructured) {
	s.Wrote = append(s.Wrote, index.NewVersion(obj))
	r.hub.Observe(key, obj)
}

// explain finds out why the hub refused an apply. If the reason is that the object at that place is not the one seen
// before, or is missing, the claim is requeued with that knowledge. The watch's current state does not count: it may
// have caught up since.
func (r *requirementReconciler) explain(
	ctx context.Context, s *downstream.Scope, key ownership.Place, looked *unstructured.Unstructured, verb string, cause error,
) error {
	if apierrors.IsInvalid(cause) || apierrors.IsConflict(cause) || apierrors.IsAlreadyExists(cause) {
		live, err := r.getHub(ctx, key)
		if err != nil && !apierror.IsMissingObject(err) {
			return hubaccess.HubError(err, "get", s.Kind.GroupResource().String(), key.Namespace)
		}
		if !sameObject(live, looked) || isOutdated(cause, live, looked) {
			if live != nil {
				r.hub.Observe(key, live)
			}
			// Retried silently and with back-off: the observed object may not be shown before the watch has caught up.
			return apierrors.NewConflict(s.Kind.GroupResource(), s.Name, errWatchBehind)
		}
	}
	cause = hubaccess.HubError(cause, verb, s.Kind.GroupResource().String(), key.Namespace)
	return hubaccess.HubUnavailable(fmt.Errorf("cannot %s %s %q in the hub: %w", verb, s.Kind, key.NamespacedName, cause))
}

// isOutdated reports whether an update was refused because the object has changed since it was read.
func isOutdated(cause error, live, looked *unstructured.Unstructured) bool {
	return apierrors.IsConflict(cause) && live != nil && looked != nil && live.GetResourceVersion() != looked.GetResourceVersion()
}

// sameObject reports whether both are the same object, or both are nil.
func sameObject(a, b *unstructured.Unstructured) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.GetUID() == b.GetUID()
}

// getHub reads a claim from the hub's API server.
func (r *requirementReconciler) getHub(ctx context.Context, key ownership.Place) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(key.Kind.GroupVersionKind)
	if err := r.hubReader.Get(ctx, key.NamespacedName, obj); err != nil {
		return nil, fmt.Errorf("cannot get %s %q in the hub: %w", key.Kind, key.NamespacedName, err)
	}
	return obj, nil
}

func newPushedClaim(intent, hub *unstructured.Unstructured) index.PushedClaim {
	return index.PushedClaim{
		Hash:            intent.GetAnnotations()[ownership.AppliedHashAnnotation],
		UID:             hub.GetUID(),
		ResourceVersion: hub.GetResourceVersion(),
	}
}
