// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// What is kept about a claim goes when the claim goes. It also goes when the claim's kind is not followed any more, or in
// another version, and when its cluster is disengaged; and a reconcile that was under way meanwhile must not bring it back.

// forgetKind drops what is kept about the claims of a kind that is not followed any more in a cluster.
func (r *requirementReconciler) forgetKind(name mcr.ClusterName, kind kindwatch.Kind) {
	gone := func(req Request) bool { return req.ClusterName == name && req.Kind == kind }
	r.hub.forgetRequests(gone)
	r.metrics.forgetRequests(gone)
	r.forgetRequests(gone)
}

// forgetCluster drops what is kept about the claims of a cluster that is gone.
func (r *requirementReconciler) forgetCluster(name mcr.ClusterName) {
	gone := func(req Request) bool { return req.ClusterName == name }
	r.hub.forgetRequests(gone)
	r.forgetRequests(gone)
	r.identities.forget(name)
	r.bursts.forget(name)
	r.metrics.forget(name)
}

func (r *requirementReconciler) forgetRequests(gone func(Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for req := range r.pushed {
		if gone(req) {
			delete(r.pushed, req)
		}
	}
	for req := range r.shown {
		if gone(req) {
			delete(r.shown, req)
		}
	}
	for req := range r.told {
		if gone(req) {
			delete(r.told, req)
		}
	}
	maps.DeleteFunc(r.failing, func(req Request, _ failure) bool { return gone(req) })
	for req := range r.vanished {
		if gone(req) {
			delete(r.vanished, req)
		}
	}
}

// tidy undoes what a reconcile has left if its cluster or kind went while it was under way. Whoever goes later forgets it.
func (r *requirementReconciler) tidy(req Request) {
	if r.workloads.ifGone(req.ClusterName, func() { r.forgetCluster(req.ClusterName) }) {
		return
	}
	w, ok := r.workloads.get(req.ClusterName)
	if !ok {
		return // It has just gone, and with it what this reconcile left.
	}
	if kind, ok := w.kindOf(req.Kind.GroupResource().String()); !ok || kind != req.Kind {
		r.forget(req)
	}
}

// tidy is the same for a definition.
func (r *definitionReconciler) tidy(name mcr.ClusterName) {
	r.workloads.ifGone(name, func() {
		r.forget(name)
		r.metrics.forget(name)
	})
}

func (h *hub) forgetRequests(gone func(Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.waitsAt {
		if gone(r) {
			h.stopWaitingLocked(r)
		}
	}
}

func (m *Metrics) forgetRequests(gone func(Request) bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r, reason := range m.reasons {
		if gone(r) {
			m.requirements.WithLabelValues(r.ClusterName.String(), reason).Dec()
			delete(m.reasons, r)
		}
	}
}
