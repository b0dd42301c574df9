// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// TestEventsAreReadLate is about the condition of a cluster that sends more events than are read.
func TestEventsAreReadLate(t *testing.T) {
	p := &Provider{
		o: Options{Clock: clocktesting.NewFakeClock(time.Now())}, metrics: newMetrics(nil),
		engaged: map[mcr.ClusterName]*connected{"a": nil}, refusals: map[mcr.ClusterName]datedRefusal{},
		published: map[mcr.ClusterName]Cluster{"a": {}},
	}
	p.eventsDelayed("a", transport.ErrEventsDelayed)
	p.eventsDelayed("gone", transport.ErrEventsDelayed)
	if got := p.published["a"].Refused.Reason; got != ReasonEventsDelayed {
		t.Errorf("want the cluster to be told of its events, got %q", got)
	}
	if n := testutil.CollectAndCount(p.metrics.refused); n > 0 || len(p.refusals) != 1 {
		t.Errorf("want no answer to be counted as refused, and nothing to be kept of a cluster that has gone, got %d, %v", n, p.refusals)
	}
}
