// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A claim that cannot be synchronised is retried with a growing back-off, or after a minute if no event would signal a
// change. If its owner knows earlier that the cause is fixed, they request a reconcile with a new value of the
// annotation ReconcileRequestedAtAnnotation: the claim is reconciled now, its back-off is reset, and failed attempts
// are repeated.
//
// Every change of a claim requeues it without delay, at the cost of one of its cluster's turns in the queue. A request
// does more, since the back-off protects the hub. So each claim is answered once per ReconcileRequestInterval. More
// frequent requests are answered together when the interval is over, and a back-off is reset no more often than that.

// requestsReconcile reports whether a change of a claim requests a reconcile. A claim created with the annotation is
// reconciled because it is new.
func requestsReconcile(e kindwatch.Event) bool {
	value := e.Object.GetAnnotations()[fleetv1alpha1.ReconcileRequestedAtAnnotation]
	return e.Old != nil && value != "" && value != e.Old.GetAnnotations()[fleetv1alpha1.ReconcileRequestedAtAnnotation]
}

// onlyRequestsReconcile reports whether that is the only change.
func onlyRequestsReconcile(e kindwatch.Event) bool {
	return requestsReconcile(e) && equality.Semantic.DeepEqual(withoutRequest(e.Old), withoutRequest(e.Object))
}

// withoutRequest returns a claim's content without the request. It shares data with the claim.
func withoutRequest(claim *unstructured.Unstructured) map[string]any {
	out := maps.Clone(claim.Object)
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	annotations := claim.GetAnnotations()
	delete(annotations, fleetv1alpha1.ReconcileRequestedAtAnnotation)
	for _, field := range []string{"annotations", "resourceVersion", "managedFields"} {
		delete(metadata, field)
	}
	out["metadata"] = []any{metadata, annotations}
	return out
}

// noteReconcileRequest notes that a claim's owner requests a reconcile, and returns how long it must wait.
func (r *requirementReconciler) noteReconcileRequest(req multicluster.ObjectRequest) time.Duration {
	var left time.Duration
	r.ledger.Edit(req, func(e *index.Entry) {
		e.Request.Pending = true
		left = e.Request.Left(r.clock.Now())
	})
	return left
}

// resetBackOff is called when a claim is reconciled, and resets its back-off if that was requested.
func (r *requirementReconciler) resetBackOff(req multicluster.ObjectRequest) {
	now, a := r.clock.Now(), r.ledger.Entry(req).Request
	switch {
	case !a.Pending:
		return
	case a.Left(now) > 0:
		// Another event caused this reconcile.
		r.hub.Requirements.AddAfter(a.Left(now), req)
		return
	}
	r.ledger.Edit(req, func(e *index.Entry) {
		e.Request = index.ReconcileRequest{Answered: now}
		e.Pushed, e.Shown, e.Recorded = index.PushedClaim{}, "", ""
	})
	r.hub.Requirements.ForgetFailures(req)
}
