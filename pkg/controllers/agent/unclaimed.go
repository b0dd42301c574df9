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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A watch sees the deletion of a claim that slips through its finalizer (vanished.go), unless the manager is killed at
// that moment or relists. Also, a create that a dead process sent to the hub can arrive after its claim was released.
// Either leaves an object in the hub that no claim refers to.
//
// Such an object is recent, and says so: its creation records the time, without another request. A hub object whose
// claim is gone, with its deletion unobserved, is deleted as the class says if it was created within
// index.RecentCreation, has not been changed for its claim since, and names the very cluster in which the claim is
// missing; that cluster's API server is queried once more. For older objects, a missing claim proves nothing: the claim
// of a restored or replacement cluster may still appear. Backups contain the recorded time too, so restored objects are
// not taken for new. If an older object names the claim, too, it may be the claim's, and all stay. A claim that this
// process released, or saw deleted after its finalizer was removed by force, keeps its object (MarkReleased in package
// view); that another claim of that name was deleted says nothing.
//
// Rejected: having the claim confirm its object, and marking unconfirmed objects. That is exact for any age, but costs
// each claim one more write to the hub.

// isNew reports whether all hub objects were just created for a claim of a cluster, and none is being deleted.
func isNew(objects []*unstructured.Unstructured, cluster types.UID, now time.Time) bool {
	for _, obj := range objects {
		if obj.GetDeletionTimestamp() != nil || cluster == "" || ownership.GetResidence(obj).Cluster != cluster ||
			!ownership.WasCreatedWithin(obj, now, index.RecentCreation) {
			return false
		}
	}
	return len(objects) > 0
}

// newObjects returns the hub objects that name a claim if all were just created for it; else none.
func (r *requirementReconciler) newObjects(req multicluster.ObjectRequest) []*unstructured.Unstructured {
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return nil
	}
	from := newOrigin(req, cluster.EffectiveIdentifier())
	if !r.hub.IsRecentCreation(from) {
		return nil
	}
	places := r.hub.Places(from)
	objects := make([]*unstructured.Unstructured, 0, len(places))
	for _, place := range places {
		obj, err := r.hub.Get(place)
		if err != nil {
			return nil // Its creation or deletion makes a new request.
		}
		objects = append(objects, obj)
	}
	if !isNew(objects, types.UID(cluster.UID), r.clock.Now()) {
		return nil
	}
	return objects
}

// newOrigin returns the origin that a claim's hub object names.
func newOrigin(req multicluster.ObjectRequest, identifier string) ownership.Origin {
	return ownership.Origin{
		Source: ownership.Source{Identifier: identifier, Namespace: req.Namespace}, Resource: req.Kind.GroupResource(), Name: req.Name,
	}
}

// hasObject reports whether the hub has an object that was created for a claim, and not for another of that name.
func (r *requirementReconciler) hasObject(req multicluster.ObjectRequest, claim *unstructured.Unstructured) bool {
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	return ok && slices.ContainsFunc(r.hub.Places(newOrigin(req, cluster.EffectiveIdentifier())), func(place ownership.Place) bool {
		obj, err := r.hub.Get(place)
		return err == nil && ownership.IsFor(obj, claim)
	})
}

// released notes that a claim's deletion was observed, or that it was released, and that its hub objects stay.
func (r *requirementReconciler) released(req multicluster.ObjectRequest) {
	if cluster, ok := r.fleet.Lookup(req.ClusterName); ok && cluster.EffectiveIdentifier() != "" {
		r.hub.MarkReleased(newOrigin(req, cluster.EffectiveIdentifier()))
	}
}

// deletedDuringCreation returns a missing claim as one that vanished if all that is left of it is a hub object that was
// just created; a PendingError if there is no such object, or if the claim's deletion was observed.
func (r *requirementReconciler) deletedDuringCreation(ctx context.Context, w *index.Cluster, req multicluster.ObjectRequest) (*unstructured.Unstructured, error) {
	left := r.newObjects(req)
	if len(left) == 0 {
		return nil, condition.PendingError{}
	}
	claim := &metav1.PartialObjectMetadata{}
	claim.SetGroupVersionKind(req.Kind.GroupVersionKind)
	err := w.Reader.Get(ctx, req.NamespacedName, claim)
	if err == nil {
		return nil, condition.PendingError{} // The watch has yet to tell of it, and makes a new request.
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot find out whether %s exists: %w", req, hubaccess.MarkUnanswered(err))
	}
	log.FromContext(ctx).Info("Removing what was created for a claim that was deleted meanwhile")
	last := &unstructured.Unstructured{Object: map[string]any{}}
	last.SetGroupVersionKind(req.Kind.GroupVersionKind)
	last.SetNamespace(req.Namespace)
	last.SetName(req.Name)
	last.SetUID(types.UID(left[0].GetAnnotations()[fleetv1alpha1.SourceClaimUIDAnnotation]))
	// It had the finalizer, or nothing would have been created.
	last.SetFinalizers(w.Owner().Protected(nil))
	r.vanish(req, last)
	return last, nil
}
