// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// findings report whether something was found, or is unknown.
type findings struct{ found, unknown bool }

// pass is one reconciliation of one workload cluster.
type pass struct {
	*reconciler
	w       *workload
	cluster connection.Cluster
	offer   offer
	views   map[string]view

	// writes counts writes, so that a cluster with many of them yields to others.
	writes int

	// userRequested reports whether this pass requested Masthead's username from the cluster.
	userRequested bool

	// refused reports whether our own policy may have refused a request in this pass.
	refused bool

	// protected reports whether our policy is in force, as far as is known, or soon will be.
	protected bool

	// kept are the definitions that are not wanted but must stay.
	kept sets.Set[string]

	// otherCrossplane records evidence of the cluster's own Crossplane using Masthead's objects, found when the definition
	// of CompositeResourceDefinitions was to be removed.
	otherCrossplane findings
}

func (r *reconciler) newPass(w *workload, cluster connection.Cluster, o offer) *pass {
	p := &pass{reconciler: r, w: w, cluster: cluster, offer: o, views: map[string]view{}, kept: sets.New[string]()}
	for _, k := range mirroredKinds() {
		p.views[k.crd()] = r.hub.view(k.crd())
	}
	return p
}

// owns reports whether the Masthead of this hub, or of one that it took over from, put an object into the cluster.
func (p *pass) owns(obj *unstructured.Unstructured) bool { return p.cluster.Hub.IsManaged(obj) }

// run carries out the pass. One part does not keep another from being tried.
func (p *pass) run(ctx context.Context) (reconcile.Result, error) {
	p.watch()
	defer p.watch()
	return condition.Result(p.protect(ctx), p.mirrorAll(ctx))
}

// wanted reports whether the cluster should show a kind, according to the cache.
func (p *pass) wanted(k mirroredKind) bool {
	v := p.views[k.crd()]
	return p.offer.shows(k.resource) && (!v.known || v.definition != nil)
}

// watch watches in the cluster what Masthead wants there and what it may have left there, and nothing else.
func (p *pass) watch() {
	var kinds []kindwatch.Kind
	follow := func(kind kindwatch.Kind, wanted bool) {
		if wanted {
			p.w.setUnmanaged(kind, false)
		}
		if wanted || !p.w.isUnmanaged(kind) {
			kinds = append(kinds, kind)
		}
	}
	follow(policyKind, p.offer.protected)
	follow(bindingKind, p.offer.protected)
	kinds = append(kinds, ownedDefinitionKind)
	for _, k := range mirroredKinds() {
		wanted := p.wanted(k)
		_, shownIn, err := p.w.see(ownedDefinitionKind, k.crd())
		if wanted {
			p.w.setUnmanaged(crdKind(k.crd(), true), false)
		}
		if wanted && shownIn != ownedDefinitionKind {
			kinds = append(kinds, shownIn)
		}
		if v := p.views[k.crd()]; v.known || !p.offer.shows(k.resource) {
			p.w.follow(k.crd(), mirrorKind(v.kind), wanted && shownIn == ownedDefinitionKind && err == nil)
		}
	}
	p.w.watcher.Set(ownerMirror, append(kinds, p.w.followedKinds()...)...)
}

// known returns why the objects of a kind in the cluster are unknown, if they are.
func (p *pass) known(kind kindwatch.Kind, reasons reasonSet) error {
	state, message := p.w.watcher.State(kind)
	switch state {
	case kindwatch.StateSynced:
		return nil
	case kindwatch.StateForbidden:
		return condition.NewError(reasons.Forbidden, install.Unwatchable(kind.GroupResource()))
	case kindwatch.StateTooLarge:
		return condition.NewError(reasons.tooLarge, "No objects of the kind are written: "+message+".")
	case kindwatch.StateStale:
		return condition.NewError(reasons.Rejected, "The objects of the kind in the cluster are not known: "+message+".")
	case kindwatch.StateNotServed:
		if reasons.notServed != "" {
			return condition.NewError(reasons.notServed, fmt.Sprintf("The cluster does not serve %s.", kind.GroupResource()))
		}
	case kindwatch.StateSyncing, kindwatch.StateUnwatched:
	}
	return condition.PendingError{}
}
