// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Judgement identifies the states of the definitions on both sides that RetainedKind depends on, so that they are not
// read again while unchanged. known is false while they cannot be read.
func Judgement(h *index.Hub, crd *unstructured.Unstructured, name string) (states string, known bool) {
	hub, err := h.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: name})
	switch {
	case client.IgnoreNotFound(err) != nil:
		return "", false
	case crd == nil:
		return "", true
	case err != nil:
		return ownership.SecretVersion(crd), true
	}
	return ownership.SecretVersion(crd) + " " + ownership.SecretVersion(hub), true
}

// Judge reads both sides' definitions of a kind that is not offered, and decides how it is retained.
func (r *Reconciler) Judge(
	ctx context.Context, w *index.Cluster, req mcreconcile.Request, before index.Followed, following bool, states string,
) (reconcile.Result, error) {
	crd, err := r.get(ctx, w.Reader, req.Name)
	switch {
	case apierrors.IsNotFound(err):
		// Its claims are gone, too.
		r.Unfollow(w, req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	case !IsOurs(crd, w.Owner()):
		if !following {
			return reconcile.Result{}, nil
		}
		if _, other := install.GetMarks(crd).OtherHub(w.Owner()); other {
			r.Unfollow(w, req.Name)
			return reconcile.Result{}, nil
		}
		r.drain(w, crd, before.Kind)
		return reconcile.Result{RequeueAfter: condition.SlowRetry()}, nil
	}
	f, ok := index.Followed{}, false
	if _, could := ClaimKind(crd); could {
		hub, known, err := r.hubDefinition(ctx, req.Name)
		if err != nil || !known {
			return reconcile.Result{}, err
		}
		f, ok = RetainedKind(crd, hub)
	}
	if !ok && before.InHub { // The hub has offered the kind, and may have objects of it.
		f, ok = before, true
		f.Retained = true
	}
	if ok && !following && w.RetainedKinds() >= MaxRetainedKinds {
		return reconcile.Result{}, nil
	}
	w.EditDefinition(req.Name, func(d *index.Definition) { d.Judged = states })
	r.Follow(w, req.Name, f)
	if !ok {
		return reconcile.Result{}, nil
	}
	// Its claims may be known already, so that no other event would say that there are none.
	return reconcile.Result{RequeueAfter: condition.Soon}, nil
}

// drain handles a definition that has the name of one of ours but is not ours, or no longer. Its claims are left alone,
// except that those still bearing our finalizer can be deleted. When none is left, it is no longer followed; only we
// could add the finalizer.
func (r *Reconciler) drain(w *index.Cluster, have *unstructured.Unstructured, kind kindwatch.Kind) {
	crd := have.GetName()
	if theirs, ok := ClaimKind(have); ok && theirs.GroupKind() == kind.GroupKind() {
		kind = theirs // In a version that the cluster serves.
	}
	if w.Definition(crd).Drained {
		r.Unfollow(w, crd)
		return
	}
	if r.Follow(w, crd, index.Followed{Kind: kind, InHub: true, DeletionsOnly: true}) {
		return
	}
	claims, err := w.Watcher.List(kind)
	if err == nil && !slices.ContainsFunc(claims, func(i *kindwatch.Item) bool { return w.BearsFinalizer(i.Metadata()) }) {
		w.EditDefinition(crd, func(d *index.Definition) { d.Drained = true })
		r.Unfollow(w, crd)
	}
}

// Follow starts following the claims of a kind in a cluster, and returns whether that is new.
func (r *Reconciler) Follow(w *index.Cluster, crd string, f index.Followed) bool {
	before, following := w.Followed(crd)
	news := w.Follow(crd, f)
	if news {
		r.Hub.RefreshFollowed(w)
	}
	if following && before.Kind != f.Kind {
		r.KindGone(w.Name, before.Kind)
	}
	return news
}

// Unfollow stops following the claims of a kind in a cluster.
func (r *Reconciler) Unfollow(w *index.Cluster, crd string) { r.Follow(w, crd, index.Followed{}) }

// hubDefinition returns the relevant parts of the hub's definition of a name, nil if the watch says there is none. A
// definition can be large, and a cluster's owner decides how often one of its name is judged: it is read once per
// state, for all clusters. known is false as long as the hub could not be checked.
func (r *Reconciler) hubDefinition(ctx context.Context, name string) (hub *HubDefinition, known bool, err error) {
	meta, err := r.Hub.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: name})
	if apierrors.IsNotFound(err) {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.judgeable, name)
		return nil, true, nil
	}
	if err != nil {
		return nil, false, nil // Syncing the watch requeues the definition.
	}
	r.mu.Lock()
	kept, ok := r.judgeable[name]
	r.mu.Unlock()
	if !ok || kept.of != ownership.SecretVersion(meta) {
		crd, err := r.get(ctx, r.HubReader, name)
		if err != nil {
			return nil, false, client.IgnoreNotFound(err) // The watch is about to report the deletion.
		}
		kept = *NewHubDefinition(crd)
		r.mu.Lock()
		r.judgeable[name] = kept
		r.mu.Unlock()
	}
	if kept.published {
		r.Hub.SetServed(kept.kind, kept.served)
		kept.kind = r.Hub.HubKind(kept.kind)
	}
	return &kept, true, nil
}
