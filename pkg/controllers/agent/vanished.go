// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A finalizer does not always keep an object. An API server decides whether a deletion has to wait when the deletion
// begins, and does not check again: a finalizer added in between is written, and the object is deleted anyway. For us
// that is a claim deleted right after its creation, whose hub object nothing would delete.
//
// This case can be recognised: the watch reports the deletion of an object with our finalizer and no deletion
// timestamp. An object that waited for a finalizer has the timestamp, even if the finalizer was removed by force, which
// we respect: then the object in the hub stays. A claim merely missing from a list proves nothing: a cluster that
// replaces a lost one under the same identifier starts empty. So the object stays, too, and is counted as an orphan, if
// the manager was killed, or had to list again, before it had acted on such a deletion.

// vanished reports whether an event is such a deletion of a claim.
func vanished(e kindwatch.Event, owner hubidentity.Owner) bool {
	return e.Type == kindwatch.Deleted && !e.Relisted && e.Object.GetDeletionTimestamp() == nil &&
		owner.IsProtected(e.Object)
}

// vanish stores the last state of a claim until its object in the hub is deleted. A claim that exists again waits for
// that: it may have another target, and would leave the object behind.
func (r *requirementReconciler) vanish(req multicluster.ObjectRequest, last *unstructured.Unstructured) {
	r.ledger.Edit(req, func(e *index.Entry) { e.Vanished = last })
}
