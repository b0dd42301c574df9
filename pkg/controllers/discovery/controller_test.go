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

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/install"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestReporterHearsWhyAKindIsNotShownNow(t *testing.T) {
	latest, recorder := "", events.NewFakeRecorder(10)
	reporter := func(_ mcr.ClusterName, _ string, _ bool, problem *condition.Error) {
		if problem != nil {
			latest = problem.Message
		}
	}
	r := &reconciler{reports: newReports(recorder, reporter, NewMetrics(prometheus.NewRegistry()))}
	r.workloads = newWorkloads(r.reports, &install.PolicyUsers{}, time.Now)
	p := &pass{reconciler: r, w: &workload{name: "w1"}, cluster: connection.Cluster{Name: "w1"}}
	report := func(message string) {
		p.reportKind(t.Context(), "a", 0, &condition.Error{Reason: "Foreign", Message: message})
	}
	r.workloads.Add(t.Context(), "w1", p.w)
	for _, message := range []string{"It is that of A.", "It is that of B."} {
		if report(message); latest != message {
			t.Errorf("want %q, got %q", message, latest)
		}
	}
	if len(recorder.Events) != 1 {
		t.Errorf("want one event, as the text may be the cluster's, got %d", len(recorder.Events))
	}
	r.workloads.Remove("w1", p.w)
	if report("It is gone."); latest != "It is that of B." || testutil.CollectAndCount(r.reports.metrics.served) > 0 {
		t.Errorf("want nothing about a cluster that is gone, got %q", latest)
	}
}
