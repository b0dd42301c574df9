// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// TestRequestsOfAForgottenClusterAreNotCounted has a request end after its cluster was forgotten.
func TestRequestsOfAForgottenClusterAreNotCounted(t *testing.T) {
	m := newMetrics(prometheus.NewPedanticRegistry())
	before := m.requestCounts("capi/a/b")
	before.Add("get", &http.Response{StatusCode: http.StatusOK})
	m.requestCounts("capi/a/b").Add("get", &http.Response{StatusCode: http.StatusCreated})
	if got := testutil.ToFloat64(m.requests.WithLabelValues("a", "b", "capi", "get", "2xx")); got != 2 {
		t.Errorf("requests of all connections are counted together: want 2, got %v", got)
	}
	m.forget("capi/a/b")
	before.Add("get", nil)
	if n := testutil.CollectAndCount(m.requests); n != 0 {
		t.Errorf("want no series of a cluster that was forgotten, got %d", n)
	}
	after := m.requestCounts("capi/a/b")
	after.Add("list", nil)
	before.Add("list", nil)
	if got := testutil.ToFloat64(m.requests.WithLabelValues("a", "b", "capi", "list", transport.NoAnswer)); got != 1 {
		t.Errorf("the counter of a cluster that is enrolled again starts at zero: want 1, got %v", got)
	}
}

func TestHeldMetricFollowsTheReason(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	r := &record{name: "fake/ns/a"}
	for _, why := range []string{fleetv1alpha1.ReasonClassFull, fleetv1alpha1.ReasonPaused, ""} {
		r.held = nil
		if why != "" {
			r.held = condition.NewError(why, "x")
		}
		m.setHeld(r)
		n := testutil.CollectAndCount(m.held)
		if why != "" && (n != 1 || testutil.ToFloat64(m.held.WithLabelValues("ns", "a", "fake", why)) != 1) || why == "" && n != 0 {
			t.Errorf("%q: %d series", why, n)
		}
	}
	r.held = condition.NewError(fleetv1alpha1.ReasonClassFull, "x")
	m.setHeld(r)
	m.forget(r.name)
	if n := testutil.CollectAndCount(m.held); n != 0 {
		t.Errorf("%d series of a cluster that is forgotten", n)
	}
}
