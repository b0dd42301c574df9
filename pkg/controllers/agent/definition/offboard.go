// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A KindFunc is called with a kind of a cluster, and whether a watch knows its objects; or with why a kind, or which
// kinds there are, cannot be found out. An error that it returns ends the calls. It returns an error with which it was
// called unless the others are to follow nevertheless.
type KindFunc func(kind kindwatch.Kind, known bool, err error) error

// Offboard opens what is closed of the definitions of a cluster, and calls fn for each kind of which claims can bear
// our finalizer: those that are followed, and then those of definitions of ours of which that is not decided, as in the
// moment after a restart, or that are too many to be followed. A definition comes before its claims: an API server lets
// no claim of a closed one be changed.
//
// It is for a cluster that leaves, in which nothing is reconciled any more and to which nobody comes back: what no
// watch knows is read now, and not kept. There can be as many definitions with our label as the cluster's owner likes,
// so that the kinds that are followed go first.
func (r *Reconciler) Offboard(ctx context.Context, w *view.Cluster, fn KindFunc) error {
	followed := w.FollowedNames()
	for _, crd := range followed {
		if err := r.kindOf(ctx, w, crd, fn); err != nil {
			return err
		}
	}
	before := sets.New(followed...)
	other := func(crd *unstructured.Unstructured) error {
		if before.Has(crd.GetName()) || !IsOurs(crd, w.Owner()) || ManagedByOther(crd) {
			return nil
		}
		return r.kindOf(ctx, w, crd.GetName(), fn)
	}
	ours, err := w.Watcher.List(view.OwnedCRDKind)
	if err != nil {
		if err = w.EachLive(ctx, view.OwnedCRDKind, other); err != nil {
			return fn(kindwatch.Kind{}, false, err)
		}
		return nil
	}
	for _, crd := range ours {
		if err := other(crd); err != nil {
			return err
		}
	}
	return nil
}

// kindOf opens one definition, and calls fn with its kind.
func (r *Reconciler) kindOf(ctx context.Context, w *view.Cluster, name string, fn KindFunc) error {
	f, following := w.Followed(name)
	_, err := w.Watcher.List(f.Kind)
	known := following && err == nil
	if known && !mayBeClosed(w, name) {
		return fn(f.Kind, true, nil)
	}
	crd, err := r.get(ctx, w.Reader, name)
	if err == nil && crd != nil && isMarked(crd, w.Owner()) {
		err = write(ctx, w, Opened(crd))
	}
	if err != nil {
		if err := fn(kindwatch.Kind{}, false, err); err != nil {
			return err
		}
	}
	switch {
	case known:
		return fn(f.Kind, true, nil)
	case crd == nil:
		return nil // Its claims are gone, too.
	}
	// The version that is followed need not be one that is served.
	kind, ok := ClaimKindOf(crd)
	if !ok {
		return nil
	}
	return fn(kind, false, nil)
}

// mayBeClosed is whether a definition of ours is marked as closed, or it is not known whether it is.
func mayBeClosed(w *view.Cluster, name string) bool {
	meta, err := w.Watcher.Get(view.OwnedCRDKind, types.NamespacedName{Name: name})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return isMarked(meta, w.Owner())
}
