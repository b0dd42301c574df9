// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// forget drops the state of a claim that is gone or no longer handled.
func (r *requirementReconciler) forget(req multicluster.ObjectRequest) {
	r.forgetAllButVanished(req)
	r.ledger.Edit(req, func(e *index.Entry) { e.Vanished = nil })
}

// forgetAllButVanished is forget for a claim that does not exist. Its last state may have been stored since the lookup,
// and is reconciled next.
func (r *requirementReconciler) forgetAllButVanished(req multicluster.ObjectRequest) {
	r.hub.StopWaiting(req)
	if w, ok := r.workloads.Get(req.ClusterName); ok {
		w.AwaitSecrets(req)
	}
	r.ledger.Edit(req, func(e *index.Entry) { *e = index.Entry{Vanished: e.Vanished} })
}

// A claim's state is dropped when the claim is deleted, when its kind is no longer followed or followed in another
// version, and when its cluster is disengaged. A reconcile that was running meanwhile must not recreate it.

// forgetKind drops the state of the claims of a kind that is no longer followed in a cluster.
func (r *requirementReconciler) forgetKind(name mcr.ClusterName, kind kindwatch.Kind) {
	gone := func(req multicluster.ObjectRequest) bool { return req.Kind == kind }
	if w, ok := r.workloads.Get(name); ok {
		w.ForgetAwaiting(gone)
	}
	r.hub.ForgetRequests(name, gone)
	r.ledger.Forget(name, gone)
}

// forgetCluster drops the state of the claims of a cluster that is gone.
func (r *requirementReconciler) forgetCluster(name mcr.ClusterName) {
	gone := func(multicluster.ObjectRequest) bool { return true }
	r.hub.ForgetRequests(name, gone)
	r.ledger.Forget(name, gone)
	r.identities.Forget(name)
	r.metrics.ForgetCluster(name)
}

// forgetGone drops what a reconcile stored if its cluster or kind was removed meanwhile. If it is removed later, that
// removal drops it.
func (r *requirementReconciler) forgetGone(req multicluster.ObjectRequest) {
	if r.workloads.IfGone(req.ClusterName, func() { r.forgetCluster(req.ClusterName) }) {
		return
	}
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		return // It has just gone, and its state was dropped with it.
	}
	if kind, ok := w.KindFor(req.Kind.GroupResource().String()); !ok || kind != req.Kind {
		r.forget(req)
	}
}
