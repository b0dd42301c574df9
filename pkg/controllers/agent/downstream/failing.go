// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// FailurePatience is how long synchronising a claim has to fail before the claim reports it. Shorter failures, such as
// the restart of a webhook of the hub, are retried silently.
const FailurePatience = 10 * time.Second

// IsTellable reports whether a failure concerns a claim's user: conflicts resolve by themselves, and failures because
// the manager or the connection stops do not concern the claim.
func IsTellable(ctx context.Context, s *Scope, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, context.Canceled) && !hubaccess.IsConflict(err) && !s.Vanished
}

// Failed records that synchronising a claim has failed, and returns what to report to its user: a PendingError, unless
// it has failed for a while.
//
// The message does not repeat the error. The error is the hub's, names its webhooks and their addresses, and changes
// with each attempt; the manager logs it in full.
func (r *Reporter) Failed(s *Scope, err error) error {
	now, uid := r.Clock.Now(), s.Claim.GetUID()
	var f index.Failure
	r.Ledger.Edit(s.ObjectRequest, func(e *index.Entry) {
		if e.Failing.Since.IsZero() || e.Failing.UID != uid {
			e.Failing = index.Failure{UID: uid, Since: now}
		}
		f = e.Failing
	})
	if now.Sub(f.Since) < FailurePatience {
		return condition.PendingError{}
	}
	return &condition.Error{
		Reason:  fleetv1alpha1.ReasonSyncFailing,
		Unknown: true,
		Message: fmt.Sprintf("Synchronising this claim fails (%s) and is tried again, see the log of Masthead in the hub",
			cmp.Or(string(apierrors.ReasonForError(err)), "no answer")),
	}
}

// Succeeded records that synchronising a claim did not fail.
func (r *Reporter) Succeeded(req multicluster.ObjectRequest) {
	r.Ledger.Edit(req, func(e *index.Entry) { e.Failing = index.Failure{} })
}
