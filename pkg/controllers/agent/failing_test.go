// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ledger"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/scope"
	"github.com/masthead-dev/masthead/test/controllertest"
)

// aheadClock is the real clock, some time ahead.
type aheadClock struct {
	clock.RealClock

	ahead atomic.Int64
}

func (c *aheadClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// deadWrites lets no write of the fixture's kind through to the hub while it is dead: no API server answers it.
type deadWrites struct {
	group string
	dead  atomic.Bool
	lost  atomic.Int64
}

func (d *deadWrites) wrap(next http.RoundTripper) http.RoundTripper {
	return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		if d.dead.Load() && req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/apis/"+d.group+"/") {
			d.lost.Add(1)
			return nil, errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
		}
		return next.RoundTrip(req)
	})
}

// TestClaimSaysThatItsSynchronisationFails has the hub give no answer to writes. What it answers when a webhook is down
// is told by HubUnavailable.
func TestClaimSaysThatItsSynchronisationFails(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	now, writes := &aheadClock{}, &deadWrites{group: f.group}
	f.options = func(o *Options) { o.Clock = now }
	f.hubConfig = rest.CopyConfig(f.hubConfig)
	f.hubConfig.Wrap(writes.wrap)
	f.start()
	f.served()
	f.claim("old")
	f.pushed("old")
	f.ready("old", "before")
	f.synced("old", reason.ReasonSynced)
	writes.dead.Store(true)

	f.claim("db")
	old := f.mustGet("old")
	f.Edit(f.workload, old, func() { _ = unstructured.SetNestedField(old.Object, "9", "spec", "version") })
	f.Within("the hub was asked in vain", func() error {
		if writes.lost.Load() < 2 {
			return errors.New("it was not asked")
		}
		return nil
	})
	if c := propagation.AgentSynced(f.mustGet("db")); c != nil {
		t.Errorf("what may pass in a moment is retried silently, got %v", c)
	}

	now.ahead.Store(int64(failurePatience))
	for _, name := range []string{"db", "old"} {
		claim := f.synced(name, reason.ReasonSyncFailing)
		if c := propagation.AgentSynced(claim); c["status"] != string(metav1.ConditionUnknown) {
			t.Errorf("%s: it is not known whether the hub holds the claim, got %v", name, c)
		}
		if got, err := status.Compute(claim); err != nil || got.Status != status.InProgressStatus {
			t.Errorf("%s: want InProgress, got %+v, %v", name, got, err)
		}
	}
	// What the hub says of the object that it has comes all the same.
	f.ready("old", "after")
	f.Within("the status of the hub is shown while nothing can be pushed", func() error {
		if address, _, _ := unstructured.NestedString(f.mustGet("old").Object, "status", "address"); address != "after" {
			return fmt.Errorf("it is %q", address)
		}
		return nil
	})

	writes.dead.Store(false)
	for _, name := range []string{"db", "old"} {
		f.poke(name) // By themselves they are tried again with back-off, which may have grown long.
		f.synced(name, reason.ReasonSynced)
	}
}

func TestFailuresAreToldAfterAWhile(t *testing.T) {
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
		"AtOnce": {reason: "It may pass.", err: down, after: failurePatience - 1},
		"AfterAWhile": {
			reason: "It does not. The addresses of the hub are not told.", err: down, after: failurePatience,
			want: "Synchronising this claim fails (InternalError) and is tried again, see the log of Masthead in the hub",
		},
		"NoAnswer": {
			reason: "An error without an answer.", err: errors.New("dial tcp 10.0.0.1:443: i/o timeout"), after: failurePatience,
			want: "Synchronising this claim fails (no answer) and is tried again, see the log of Masthead in the hub",
		},
		"SucceededBetween": {reason: "It begins anew.", err: down, after: failurePatience, succeeded: true},
		"Conflict":         {reason: "It is retried silently.", err: apierrors.NewConflict(resource, "db", errors.New("x")), after: time.Hour},
		"Ended":            {reason: "The manager ends.", err: down, after: time.Hour, ctx: ended},
		"Vanished":         {reason: "There is nobody to tell.", err: down, after: time.Hour, vanished: true},
	} {
		t.Run(name, func(t *testing.T) {
			now := testingclock.NewFakePassiveClock(at)
			r := &reporter{clock: now, ledger: &ledger.Ledger{}}
			ctx := tc.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			s := &scope.Scope{Facts: plan.Facts{Claim: claim, Vanished: tc.vanished}}
			if p, _ := r.failed(ctx, s, tc.err); p != nil {
				t.Errorf("The first failure is told: %v", p)
			}
			if tc.succeeded {
				r.succeeded(s.Request)
			}
			now.SetTime(at.Add(tc.after))
			got := ""
			if p, _ := r.failed(ctx, s, tc.err); p != nil {
				got = p.Message
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
