// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// aheadClock is the real clock, moved ahead.
type aheadClock struct {
	clock.RealClock

	ahead atomic.Int64
}

func (c *aheadClock) Now() time.Time { return c.RealClock.Now().Add(time.Duration(c.ahead.Load())) }

func (c *aheadClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// deadWrites blocks writes of the fixture's kind to the hub while dead is set: no API server answers them.
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

// TestClaimSaysThatItsSynchronisationFails has a hub that does not answer writes. HubUnavailable covers the answers
// when a webhook is down.
func TestClaimSaysThatItsSynchronisationFails(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	now, writes := &aheadClock{}, &deadWrites{group: f.Group}
	f.options = func(o *Options) { o.Clock = now }
	f.HubConfig = rest.CopyConfig(f.HubConfig)
	f.HubConfig.Wrap(writes.wrap)
	f.start()
	f.WaitForServed()
	f.CreateClaim("old")
	f.WaitForPushed("old")
	f.MarkReady("old", "before")
	f.WaitForSynced("old", fleetv1alpha1.ReasonSynced)
	writes.dead.Store(true)

	f.CreateClaim("db")
	old := f.MustGetClaim("old")
	f.Edit(f.Workload, old, func() { _ = unstructured.SetNestedField(old.Object, "9", "spec", "version") })
	f.Within("a request to the hub failed", func() error {
		if writes.lost.Load() < 2 {
			return errors.New("there was no request")
		}
		return nil
	})
	if c := propagation.AgentSynced(f.MustGetClaim("db")); c != nil {
		t.Errorf("what may pass in a moment is retried silently, got %v", c)
	}

	now.ahead.Store(int64(downstream.FailurePatience))
	for _, name := range []string{"db", "old"} {
		claim := f.WaitForSynced(name, fleetv1alpha1.ReasonSyncFailing)
		if c := propagation.AgentSynced(claim); c["status"] != string(metav1.ConditionUnknown) {
			t.Errorf("%s: it is not known whether the hub holds the claim, got %v", name, c)
		}
		if got, err := status.Compute(claim); err != nil || got.Status != status.InProgressStatus {
			t.Errorf("%s: want InProgress, got %+v, %v", name, got, err)
		}
	}
	// The hub's status of the existing object is still propagated.
	f.MarkReady("old", "after")
	f.Within("the status of the hub is shown while nothing can be pushed", func() error {
		if address, _, _ := unstructured.NestedString(f.MustGetClaim("old").Object, "status", "address"); address != "after" {
			return fmt.Errorf("it is %q", address)
		}
		return nil
	})

	writes.dead.Store(false)
	for _, name := range []string{"db", "old"} {
		f.TouchClaim(name) // Otherwise they are retried with back-off, which may be long by now.
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	}
}
