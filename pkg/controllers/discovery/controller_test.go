// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/internal/test/fakefleet"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// slowFleet does something between a lookup and its answer, once.
type slowFleet struct {
	*fakefleet.Fleet
	meanwhile func()
}

// Lookup implements Fleet.
func (f *slowFleet) Lookup(name mcr.ClusterName) (connection.Cluster, bool) {
	c, ok := f.Fleet.Lookup(name)
	if meanwhile := f.meanwhile; meanwhile != nil {
		f.meanwhile = nil
		meanwhile()
	}
	return c, ok
}

// TestWhatIsKnownOfAClusterIsNotOverwrittenByWhatWasKnownBefore changes a cluster between a lookup and the storing of
// its result. Another goroutine is notified of that change.
func TestWhatIsKnownOfAClusterIsNotOverwrittenByWhatWasKnownBefore(t *testing.T) {
	const name = mcr.ClusterName("capi/fleet/w1")
	fleet := &slowFleet{Fleet: &fakefleet.Fleet{}}
	r := &reconciler{
		fleet: fleet, enrolments: map[mcr.ClusterName]enrolment{},
		workloads: newWorkloads(newReports(nil, install.NopReporter{}, nil), &install.PolicyUsers{}, time.Now),
	}
	fleet.Set(connection.Cluster{Name: name, State: connection.StateConnecting})
	reported := make(chan struct{})
	fleet.meanwhile = func() {
		fleet.Set(connection.Cluster{Name: name, State: connection.StateConnected})
		tell := func() {
			r.enrolmentChanged(name)
			close(reported)
		}
		if !r.mu.TryLock() {
			// It waits until the first result is stored.
			go tell()
			return
		}
		r.mu.Unlock()
		tell()
	}
	r.enrolmentChanged(name)
	<-reported
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := r.enrolments[name].state; got != connection.StateConnected {
		t.Errorf("want what is known last, got %s", got)
	}
}

// latest is a Reporter that keeps the last message.
type latest struct {
	install.NopReporter

	message string
}

func (l *latest) DefinitionRefused(_ mcr.ClusterName, _, _, message string) { l.message = message }

func TestReporterHearsWhyAKindIsNotShownNow(t *testing.T) {
	reporter, recorder := &latest{}, events.NewFakeRecorder(10)
	r := &reconciler{reports: newReports(recorder, reporter, NewMetrics(prometheus.NewRegistry()))}
	r.workloads = newWorkloads(r.reports, &install.PolicyUsers{}, time.Now)
	p := &pass{reconciler: r, w: &workload{name: "w1"}, cluster: connection.Cluster{Name: "w1"}}
	report := func(message string) {
		p.reportKind(t.Context(), "a", 0, &condition.Error{Reason: "Foreign", Message: message})
	}
	r.workloads.Add("w1", nil, p.w)
	for _, message := range []string{"It is that of A.", "It is that of B."} {
		if report(message); reporter.message != message {
			t.Errorf("want %q, got %q", message, reporter.message)
		}
	}
	if len(recorder.Events) != 1 {
		t.Errorf("want one event, as the text may be the cluster's, got %d", len(recorder.Events))
	}
	r.workloads.Remove("w1", nil, p.w)
	if report("It is gone."); reporter.message != "It is that of B." || testutil.CollectAndCount(r.reports.metrics.served) > 0 {
		t.Errorf("want nothing about a cluster that is gone, got %q", reporter.message)
	}
}
