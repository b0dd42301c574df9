// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// forget drops what is kept about a claim that is gone or left alone.
func (r *requirementReconciler) forget(req request.Request) {
	r.forgetAllButVanished(req)
	r.ledger.Edit(req, func(e *ledger.Entry) { e.Vanished = nil })
}

// forgetAllButVanished is forget for a claim that turns out not to be there. Its last state can have been remembered
// since that was looked up, and is looked at next.
func (r *requirementReconciler) forgetAllButVanished(req request.Request) {
	r.hub.StopWaiting(req)
	if w, ok := r.workloads.Get(req.ClusterName); ok {
		w.AwaitSecrets(req)
	}
	r.reports.Forget(req)
	r.ledger.Edit(req, func(e *ledger.Entry) { *e = ledger.Entry{Vanished: e.Vanished} })
}

// What is kept about a claim goes when the claim goes. It also goes when the claim's kind is not followed any more, or
// in another version, and when its cluster is disengaged; and a reconcile that was under way meanwhile must not bring
// it back.

// forgetKind drops what is kept about the claims of a kind that is not followed any more in a cluster.
func (r *requirementReconciler) forgetKind(name mcr.ClusterName, kind kindwatch.Kind) {
	gone := func(req request.Request) bool { return req.Kind == kind }
	if w, ok := r.workloads.Get(name); ok {
		w.ForgetAwaiting(gone)
	}
	r.hub.ForgetRequests(name, gone)
	r.metrics.ForgetRequests(name, gone)
	r.ledger.Forget(name, gone)
}

// forgetCluster drops what is kept about the claims of a cluster that is gone.
func (r *requirementReconciler) forgetCluster(name mcr.ClusterName) {
	gone := func(request.Request) bool { return true }
	r.hub.ForgetRequests(name, gone)
	r.ledger.Forget(name, gone)
	r.identities.Forget(name)
	r.bursts.Forget(name)
	r.metrics.ForgetCluster(name)
}

// forgetGone undoes what a reconcile has left if its cluster or kind went while it was under way. Whoever goes later
// forgets it.
func (r *requirementReconciler) forgetGone(req request.Request) {
	if r.workloads.IfGone(req.ClusterName, func() { r.forgetCluster(req.ClusterName) }) {
		return
	}
	w, ok := r.workloads.Get(req.ClusterName)
	if !ok {
		return // It has just gone, and with it what this reconcile left.
	}
	if kind, ok := w.KindOf(req.Kind.GroupResource().String()); !ok || kind != req.Kind {
		r.forget(req)
	}
}
