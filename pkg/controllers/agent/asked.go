// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A claim that cannot be carried is tried again with a back-off that grows, or after a minute if nothing would tell
// that something has changed. Its owner can know earlier that the cause is mended, and asks by a new value of the
// annotation ReconcileRequestedAtAnnotation: the claim is looked at now, its back-off begins anew, and what was tried
// in vain is tried once more.
//
// Every change of a claim has it looked at, without delay, and its cluster pays with a turn of its own in the queue. A
// request is worth more, since the back-off spares the hub. So each claim is answered once in askedInterval. Who asks
// more often is answered when that is over, once for all his requests, and a back-off begins anew no more often than
// that.

// asks is whether a claim was changed so that it asks to be looked at. One that comes with the annotation is looked at
// because it is new.
func asks(e kindwatch.Event) bool {
	value := e.Object.GetAnnotations()[fleetv1alpha1.ReconcileRequestedAtAnnotation]
	return e.Old != nil && value != "" && value != e.Old.GetAnnotations()[fleetv1alpha1.ReconcileRequestedAtAnnotation]
}

// asksOnly is whether that is all that has changed.
func asksOnly(e kindwatch.Event) bool {
	return asks(e) && equality.Semantic.DeepEqual(withoutRequest(e.Old), withoutRequest(e.Object))
}

// withoutRequest is what a claim says beside asking to be looked at. What it is made of is shared.
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

// ask notes that the owner of a claim asks for it to be looked at, and says how long that has to wait.
func (r *requirementReconciler) ask(req request.Request) time.Duration {
	var left time.Duration
	r.ledger.Edit(req, func(e *ledger.Entry) {
		e.Asked.Pending = true
		left = e.Asked.Left(r.clock.Now())
	})
	return left
}

// answer is called when a claim is looked at, and has it begin anew if that was asked for.
func (r *requirementReconciler) answer(req request.Request) {
	now, a := r.clock.Now(), r.ledger.Of(req).Asked
	switch {
	case !a.Pending:
		return
	case a.Left(now) > 0:
		// Something else has it looked at.
		r.hub.Requirements.AddAfter(a.Left(now), req)
		return
	}
	r.ledger.Edit(req, func(e *ledger.Entry) {
		e.Asked = ledger.Asked{Answered: now}
		e.Pushed, e.Shown = ledger.PushedClaim{}, ""
	})
	r.hub.Requirements.ForgetFailures(req)
}
