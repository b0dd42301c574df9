// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A KindFunc is called with a kind of a cluster, and whether a watch has its objects; or with the error of looking up a
// kind, or the list of kinds. An error that it returns ends the calls. It returns the error passed to it unless the
// other kinds are to follow anyway.
type KindFunc func(kind kindwatch.Kind, known bool, err error) error

// Offboard opens the closed definitions of a cluster, and calls fn for each kind whose claims may bear our finalizer:
// first the followed kinds, then those of our definitions that are undecided, as right after a restart, or beyond the
// limit of followed kinds. A definition is opened before its claims are handled: an API server rejects changes to
// claims of a closed one.
//
// It is for a cluster that leaves, in which nothing is reconciled any more: what no watch has is read now, and not
// kept. The cluster's owner can create any number of definitions with our label, so that followed kinds go first.
func (r *Reconciler) Offboard(ctx context.Context, w *index.Cluster, fn KindFunc) error {
	followed := w.FollowedNames()
	for _, crd := range followed {
		if err := r.forKind(ctx, w, crd, fn); err != nil {
			return err
		}
	}
	before := sets.New(followed...)
	other := func(crd *unstructured.Unstructured) error {
		if before.Has(crd.GetName()) || !IsOurs(crd, w.Owner()) || ManagedByOther(crd) {
			return nil
		}
		return r.forKind(ctx, w, crd.GetName(), fn)
	}
	ours, err := w.Watcher.List(index.OwnedCRDKind)
	if err != nil {
		if err = w.EachLive(ctx, index.OwnedCRDKind, other); err != nil {
			return fn(kindwatch.Kind{}, false, err)
		}
		return nil
	}
	for _, crd := range ours {
		if err := other(crd.Object()); err != nil {
			return err
		}
	}
	return nil
}

// forKind opens one definition, and calls fn with its kind.
func (r *Reconciler) forKind(ctx context.Context, w *index.Cluster, name string, fn KindFunc) error {
	f, following := w.Followed(name)
	_, err := w.Watcher.List(f.Kind)
	known := following && err == nil
	if known && !mayBeClosed(w, name) {
		return fn(f.Kind, true, nil)
	}
	crd, err := r.get(ctx, w.Reader, name)
	if err == nil && isMarked(crd, w.Owner()) {
		err = write(ctx, w, Opened(crd))
	}
	if client.IgnoreNotFound(err) != nil {
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
	// The followed version need not be a served one.
	kind, ok := ClaimKind(crd)
	if !ok {
		return nil
	}
	return fn(kind, false, nil)
}

// mayBeClosed reports whether a definition of ours is marked as closed, or may be because that is unknown.
func mayBeClosed(w *index.Cluster, name string) bool {
	meta, err := w.Watcher.Get(index.OwnedCRDKind, types.NamespacedName{Name: name})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return isMarked(meta, w.Owner())
}
