// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A finalizer does not always keep an object. An API server decides whether a deletion has to wait when it begins, and
// does not look again before it deletes: a finalizer that is added in between is written, and the object goes all the
// same. For us that is a claim that is deleted right after it was created, whose object in the hub nobody would delete
// any more.
//
// Such an end can be told from every other: the watch reports the deletion of an object that bears our finalizer and no
// deletion timestamp. An object that waited for a finalizer has the timestamp, even if somebody removed the finalizer
// by force, which we respect: then the object in the hub stays. An object that is merely missing from a list says
// nothing, and the absence of a claim does only for an object that was created a moment ago (unclaimed.go): a cluster
// that replaces a lost one under the same identifier begins empty.

// vanished is whether an event tells such an end of a claim.
func vanished(e kindwatch.Event, owner hubidentity.Owner) bool {
	return e.Type == kindwatch.Deleted && !e.Relisted && e.Object.GetDeletionTimestamp() == nil &&
		owner.IsProtected(e.Object)
}

// vanish remembers the last state of a claim until its object in the hub is deleted.
func (r *requirementReconciler) vanish(req request.Request, last *unstructured.Unstructured) {
	r.ledger.Edit(req, func(e *ledger.Entry) { e.Vanished = last })
}

// vanishedClaim returns the last state of a claim that vanished. One that exists again takes its object in the hub
// over.
func (r *requirementReconciler) vanishedClaim(req request.Request, exists bool) *unstructured.Unstructured {
	if exists {
		r.ledger.Edit(req, func(e *ledger.Entry) { e.Vanished = nil })
	}
	return r.ledger.Of(req).Vanished
}
