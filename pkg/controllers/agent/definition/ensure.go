// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// want returns the definition that workload clusters shall have of a published kind, or a PendingError while the hub's
// is unknown.
func (r *Reconciler) want(ctx context.Context, name string, published kindwatch.Kind) (*wantedDefinition, error) {
	meta, err := r.Hub.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: name})
	if err != nil {
		// Not there yet or not synced yet: its appearance requeues the definition.
		return nil, condition.PendingError{}
	}
	of := install.CompareState(meta, r.Hub.HubKind(published).Version)

	r.mu.Lock()
	want, ok := r.wanted[name]
	r.mu.Unlock()
	if ok && want.of == of {
		return &want, nil
	}
	crd, err := r.get(ctx, r.HubReader, name)
	if apierrors.IsNotFound(err) {
		return nil, condition.PendingError{}
	}
	if err != nil {
		return nil, err
	}
	hub := NewHubDefinition(crd)
	r.Hub.SetServed(hub.kind, hub.served)
	kind := r.Hub.HubKind(published)
	d := DefinitionFor(crd, kind.Version)
	want = wantedDefinition{
		of: install.CompareState(crd, kind.Version), crd: d, hash: objects.Digest(d.Object), kind: kind, converts: NeedsConversion(crd),
	}

	r.mu.Lock()
	r.wanted[name] = want
	r.mu.Unlock()
	return &want, nil
}

// ensure creates or corrects the definition.
func (r *Reconciler) ensure(
	ctx context.Context, w *index.Cluster, req mcreconcile.Request, p crossplane.Publication, current *unstructured.Unstructured,
	want *wantedDefinition,
) error {
	owner := w.Owner()
	if current != nil && IsOurs(current, owner) && owner.IsStamped(current) && w.Definition(req.Name).Verified == install.CompareState(current, want.hash) {
		return nil
	}
	have, err := r.get(ctx, w.Reader, req.Name)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	before := have
	switch {
	case have == nil:
		have = Stamped(want.crd, owner)
		err = w.Client.Create(ctx, have, w.FieldOwner())
	case !IsOurs(have, owner):
		return r.leaveForeign(w, req, p.Kind, have)
	default:
		converts, failed := r.wouldConvert(ctx, w, have, want, p)
		if failed != nil {
			return failed
		}
		if converts {
			return r.leaveUnconverted(w, req, p.Kind, have)
		}
		wanted := KeepingStored(Stamped(want.crd, owner), have)
		if SameDefinition(have, wanted, owner) {
			break
		}
		have = Corrected(have, wanted)
		err = w.Client.Update(ctx, have, w.FieldOwner())
	}
	if r.Users.Excuses(req.ClusterName, err, r.Clock.Now()) {
		return condition.PendingError{After: condition.Soon}
	}
	err = install.DefinitionReasons.Problem("write", install.Definition(req.Name), req.ClusterName, err)
	if _, isProblem := errors.AsType[*condition.Error](err); isProblem {
		w.EditDefinition(req.Name, func(d *index.Definition) { d.Unoffered = false }) // Its objects do not matter for that.
		r.retain(w, before, p.Kind)
	}
	if err == nil {
		w.EditDefinition(req.Name, func(d *index.Definition) { d.Verified = install.CompareState(have, want.hash) })
	}
	return err
}

// wouldConvert reports whether writing a definition would reinterpret existing objects as another version, although
// they need a webhook for that.
func (r *Reconciler) wouldConvert(
	ctx context.Context, w *index.Cluster, have *unstructured.Unstructured, want *wantedDefinition, p crossplane.Publication,
) (bool, error) {
	if !want.converts || StorageVersion(have) == p.Kind.Version {
		return false, nil
	}
	// Before the check: deleting the last object requeues the definition.
	w.EditDefinition(have.GetName(), func(d *index.Definition) { d.Unoffered = true })
	empty, err := r.hasNoObjects(ctx, w, have)
	if apierrors.IsForbidden(err) {
		return true, nil // Nothing proves that there are none.
	}
	return !empty, err
}

// retain follows the claims of a definition of ours that cannot be made like the hub's, in the version that the cluster
// has. If the hub's is another one, they are only deleted, and say so.
func (r *Reconciler) retain(w *index.Cluster, have *unstructured.Unstructured, hub kindwatch.Kind) {
	if have == nil {
		return
	}
	kind, ok := ClaimKind(have)
	if ok && r.Follow(w, have.GetName(), index.Followed{Kind: kind, InHub: true, Retained: kind != hub}) {
		r.Hub.EnqueueKind(w, kind.GroupResource(), r.Hub.Requirements.AddInitial)
	}
}

// leaveUnconverted leaves a definition unchanged whose objects cannot be converted. They can still be deleted.
func (r *Reconciler) leaveUnconverted(
	w *index.Cluster, req mcreconcile.Request, hub kindwatch.Kind, have *unstructured.Unstructured,
) error {
	r.retain(w, have, hub)
	return condition.NewError(fleetv1alpha1.ReasonDefinitionConversion, fmt.Sprintf(
		"The hub offers %q in the version %q now. The cluster has objects of the version %q, and cannot call the hub's conversion webhook. "+
			"They are not synchronised, and can be deleted.", req.Name, hub.Version, multicluster.BoundedText(StorageVersion(have))),
	).RetriedAfter(condition.SlowRetry())
}

// leaveForeign leaves a definition alone that has, or has got, another owner.
func (r *Reconciler) leaveForeign(w *index.Cluster, req mcreconcile.Request, hub kindwatch.Kind, have *unstructured.Unstructured) error {
	const consequence = "its objects are not synchronised"
	message := install.Definition(req.Name).NotOurs(install.GetMarks(have), w.Owner(), consequence)
	// Another hub manages the claims, including those that it took over.
	_, other := install.GetMarks(have).OtherHub(w.Owner())
	if theirs, ok := ClaimKind(have); !other && ok && theirs.GroupKind() == hub.GroupKind() {
		r.drain(w, have, hub)
	} else {
		r.Unfollow(w, req.Name)
	}
	if owner := metav1.GetControllerOfNoCopy(have); !other && owner != nil {
		message = fmt.Sprintf("The CustomResourceDefinition %q belongs to the %s of the cluster. It is left alone, and %s.",
			req.Name, multicluster.BoundedText(fmt.Sprintf("%s %q", owner.Kind, owner.Name)), consequence)
	}
	return condition.NewError(fleetv1alpha1.ReasonDefinitionForeign, message).RetriedAfter(condition.SlowRetry())
}

// Accept synchronises the claims of a kind whose definition is in place. Known claims are requeued: a change of the
// class or the publication may affect them.
func (r *Reconciler) Accept(
	ctx context.Context, w *index.Cluster, cluster connection.Cluster, req mcreconcile.Request, kind kindwatch.Kind,
) (reconcile.Result, error) {
	w.EditDefinition(req.Name, func(d *index.Definition) { d.Unoffered = false })
	err := r.claimsProblem(ctx, w, req, kind)
	if err != nil && !condition.IsPending(err) {
		return r.conclude(ctx, cluster, req, err)
	}
	r.report(ctx, cluster, req, nil)
	w.EditDefinition(req.Name, func(d *index.Definition) { d.Drained, d.Judged = false, "" })
	// Also if it is followed already: if a withdrawal was undone before it took effect, claims still report it.
	r.Follow(w, req.Name, index.Followed{Kind: kind, InHub: true})
	r.Hub.EnqueueKind(w, kind.GroupResource(), r.Hub.Requirements.AddInitial)
	return condition.Result(err)
}

// claimsProblem returns why the claims of a kind cannot be watched; nil while they are being listed. The watch is
// retried with back-off, and makes a new request when it succeeds.
func (r *Reconciler) claimsProblem(ctx context.Context, w *index.Cluster, req mcreconcile.Request, kind kindwatch.Kind) error {
	switch state, message := w.Watcher.State(kind); state {
	case kindwatch.StateForbidden:
		return condition.NewError(fleetv1alpha1.ReasonClaimsForbidden, install.Unwatchable(kind.GroupResource()))
	case kindwatch.StateTooLarge:
		return condition.NewError(fleetv1alpha1.ReasonClaimsTooLarge, "Claims are not synchronised: "+message+".")
	case kindwatch.StateStale:
		return condition.NewError(fleetv1alpha1.ReasonClaimsStale, "Changes of claims are not watched: "+message+".")
	case kindwatch.StateNotServed:
		return r.unserved(ctx, w, req, kind)
	case kindwatch.StateSynced:
		w.EditDefinition(req.Name, func(d *index.Definition) { d.Unserved = time.Time{} })
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
	}
	return nil
}
