// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// TestEventsAreReadLate is about the condition of a cluster that sends more events than are read.
func TestEventsAreReadLate(t *testing.T) {
	v := newView(clocktesting.NewFakeClock(time.Now()), newMetrics(nil), announcer{})
	v.clusters["a"], v.engaged["a"] = Cluster{}, nil
	v.eventsDelayed("a", transport.ErrEventsDelayed)
	v.eventsDelayed("gone", transport.ErrEventsDelayed)
	if got := v.clusters["a"].Refused.Reason; got != fleetv1alpha1.ReasonEventsDelayed {
		t.Errorf("want the cluster to report its delayed events, got %q", got)
	}
	if n := testutil.CollectAndCount(v.metrics.refused); n > 0 || len(v.refusals) != 1 {
		t.Errorf("want no answer to be counted as refused, and nothing to be kept of a cluster that has gone, got %d, %v", n, v.refusals)
	}
}
