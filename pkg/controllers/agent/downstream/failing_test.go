// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
)

func TestFailuresAreReportedAfterAWhile(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	claim := agenttest.Parse(t, `{'metadata':{'uid':'1'}}`)
	down := apierrors.NewInternalError(errors.New("failed calling webhook \"x\": dial tcp 10.0.0.1:443: connect: connection refused"))
	resource := schema.GroupResource{Resource: "dbs"}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		reason    string
		ctx       context.Context // A case of the table.
		err       error
		after     time.Duration
		succeeded bool
		vanished  bool
		want      string
	}{
		"AtOnce": {reason: "It may pass.", err: down, after: FailurePatience - 1},
		"AfterAWhile": {
			reason: "It does not. The addresses of the hub are not disclosed.", err: down, after: FailurePatience,
			want: "Synchronising this claim fails (InternalError) and is tried again, see the log of Masthead in the hub",
		},
		"NoAnswer": {
			reason: "An error without an answer.", err: errors.New("dial tcp 10.0.0.1:443: i/o timeout"), after: FailurePatience,
			want: "Synchronising this claim fails (no answer) and is tried again, see the log of Masthead in the hub",
		},
		"SucceededBetween": {reason: "A success resets the time.", err: down, after: FailurePatience, succeeded: true},
		"Conflict":         {reason: "It is retried silently.", err: apierrors.NewConflict(resource, "db", errors.New("x")), after: time.Hour},
		"Ended":            {reason: "The manager ends.", err: down, after: time.Hour, ctx: ended},
		"Vanished":         {reason: "There is no claim left to report on.", err: down, after: time.Hour, vanished: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(at)
			r := &Reporter{Clock: now, Ledger: &index.Ledger{}}
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			s := &Scope{Facts: plan.Facts{Claim: claim, Vanished: tc.vanished}}
			reported := func() (*condition.Error, bool) {
				if !IsTellable(ctx, s, tc.err) {
					return nil, false
				}
				return errors.AsType[*condition.Error](r.Failed(s, tc.err))
			}
			if p, ok := reported(); ok {
				t.Errorf("The first failure is reported: %v", p)
			}
			if tc.succeeded {
				r.Succeeded(s.ObjectRequest)
			}
			now.SetTime(at.Add(tc.after))
			got := ""
			if p, ok := reported(); ok {
				got = p.Message
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
