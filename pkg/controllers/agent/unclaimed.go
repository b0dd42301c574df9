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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/answer"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
)

// The end of a claim that slips through its finalizer (vanished.go) is seen by a watch, and by nobody if the manager is
// killed just then, or lists the claims anew. And a creation that was sent to the hub by a process that is dead now can
// arrive after its claim was let go. Either leaves an object in the hub of which no claim says anything.
//
// Such an object was created a moment ago, and says so: its creation notes the time, without another request. So an
// object of the hub whose claim is gone without anybody having seen it go is deleted as the class says, if it was
// created within view.NewbornFor, if it has not been changed for its claim since, and if it names the very cluster in
// which the claim is missing, whose API server is asked once more. Of every older object the absence of a claim says
// nothing: the claim of a cluster that was restored, or of one that replaces a lost one, is still to come. The note is
// in a backup too, so that what is restored from one is not taken for new. A claim that this process has let go, or saw
// go after somebody had removed the finalizer by force, keeps its object (Released in package view).
//
// Rejected: to have the claim confirm its object, and to keep a mark on what is not confirmed. That is exact for any
// age, and costs each claim one more write to the hub.

// isNew is whether objects of the hub were all created just now for a claim of a cluster, and none of them is going.
func isNew(objects []*unstructured.Unstructured, cluster types.UID, now time.Time) bool {
	for _, obj := range objects {
		if obj.GetDeletionTimestamp() != nil || cluster == "" || ownership.ResidenceOf(obj).Cluster != cluster ||
			!ownership.WasCreatedWithin(obj, now, view.NewbornFor) {
			return false
		}
	}
	return len(objects) > 0
}

// newObjects returns the objects of the hub that name a claim if they were all created for it just now; else none.
func (r *requirementReconciler) newObjects(req request.Request) []*unstructured.Unstructured {
	cluster, ok := r.fleet.Lookup(req.ClusterName)
	if !ok || cluster.EffectiveIdentifier() == "" {
		return nil
	}
	from := originOf(req, cluster.EffectiveIdentifier())
	if !r.hub.IsNewborn(from) {
		return nil
	}
	places := r.hub.PlacesOf(from)
	objects := make([]*unstructured.Unstructured, 0, len(places))
	for _, place := range places {
		obj, err := r.hub.Watcher.Get(place.Kind, place.NamespacedName)
		if err != nil {
			return nil // Its coming, or going, makes a new request.
		}
		objects = append(objects, obj)
	}
	if !isNew(objects, types.UID(cluster.UID), r.clock.Now()) {
		return nil
	}
	return objects
}

// originOf is what an object of the hub names as its origin that belongs to a claim.
func originOf(req request.Request, identifier string) ownership.Origin {
	return ownership.Origin{
		Source: ownership.Source{Identifier: identifier, Namespace: req.Namespace}, Kind: req.Kind, Name: req.Name,
	}
}

// released notes that a claim's end was seen, or that the claim was let go, while what it has in the hub stays.
func (r *requirementReconciler) released(req request.Request) {
	if cluster, ok := r.fleet.Lookup(req.ClusterName); ok && cluster.EffectiveIdentifier() != "" {
		r.hub.Released(originOf(req, cluster.EffectiveIdentifier()))
	}
}

// slipped returns a claim in whose place there is nothing but an object of the hub that was created for it just now, as
// one that vanished; nil if there is no such object, or if the claim's end was seen.
func (r *requirementReconciler) slipped(ctx context.Context, w *view.Cluster, req request.Request) (*unstructured.Unstructured, error) {
	if len(r.newObjects(req)) == 0 {
		return nil, nil //nolint:nilnil // The comment says so.
	}
	claim := &metav1.PartialObjectMetadata{}
	claim.SetGroupVersionKind(req.Kind.GroupVersionKind)
	err := w.Reader.Get(ctx, req.NamespacedName, claim)
	if err == nil {
		return nil, nil //nolint:nilnil // The watch has yet to tell of it, and makes a new request.
	}
	if !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot find out whether %s exists: %w", req, answer.MarkUnanswered(err))
	}
	log.FromContext(ctx).Info("Removing what was created for a claim that was deleted just then")
	last := &unstructured.Unstructured{Object: map[string]any{}}
	last.SetGroupVersionKind(req.Kind.GroupVersionKind)
	last.SetNamespace(req.Namespace)
	last.SetName(req.Name)
	// It had the finalizer, or nothing would have been created.
	last.SetFinalizers(w.Owner().Protected(nil))
	r.vanish(req, last)
	return last, nil
}
