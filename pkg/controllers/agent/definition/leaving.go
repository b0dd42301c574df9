// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/view"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A KindFunc is called with a kind of a cluster, and whether a watch knows its objects; or with why a kind, or which
// kinds there are, cannot be found out. An error that it returns ends the calls. It returns an error with which it was
// called unless the others are to follow nevertheless.
type KindFunc func(kind kindwatch.Kind, known bool, err error) error

// EachKind calls fn for each kind of a cluster of which claims can bear our finalizer: those that are followed, and then
// those of definitions of ours of which that is not decided, as in the moment after a restart, or that are too many to
// be followed.
//
// It is for a cluster that leaves, in which nothing is reconciled any more and to which nobody comes back: what no watch
// knows is read now, and not kept. There can be as many definitions with our label as the cluster's owner likes, so that
// the kinds that are followed go first.
func (r *Reconciler) EachKind(ctx context.Context, w *view.Cluster, fn KindFunc) error {
	followed := w.FollowedNames()
	for _, crd := range followed {
		if err := r.kindOf(ctx, w, crd, fn); err != nil {
			return err
		}
	}
	before := sets.New(followed...)
	other := func(crd *unstructured.Unstructured) error {
		if before.Has(crd.GetName()) || !IsOurs(crd, w.Owner()) || IsAnothers(crd) {
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

// kindOf calls fn with the kind of one definition.
func (r *Reconciler) kindOf(ctx context.Context, w *view.Cluster, name string, fn KindFunc) error {
	f, following := w.Followed(name)
	if following {
		if _, err := w.Watcher.List(f.Kind); err == nil {
			return fn(f.Kind, true, nil)
		}
	}
	// The version that is followed need not be one that is served.
	crd, err := r.get(ctx, w.Reader, name)
	switch {
	case err != nil:
		return fn(kindwatch.Kind{}, false, err)
	case crd == nil:
		return nil // Its claims are gone, too.
	}
	kind, ok := ClaimKindOf(crd)
	if !ok {
		return nil
	}
	return fn(kind, false, nil)
}
