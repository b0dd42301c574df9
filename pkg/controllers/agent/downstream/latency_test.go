// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"cmp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestLatencies(t *testing.T) {
	req := multicluster.ObjectRequest{ClusterName: "capi/fleet/w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}}
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	claim := func(generation int64) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGeneration(generation)
		return u
	}
	added := kindwatch.Event{Type: kindwatch.Added, Object: claim(1)}
	edited := kindwatch.Event{Type: kindwatch.Updated, Object: claim(2), Old: claim(1)}
	with := func(e kindwatch.Event, change func(*kindwatch.Event)) kindwatch.Event { change(&e); return e }
	reported := func(e *index.Entry, event kindwatch.Event, now time.Time) {
		if ChangesClaim(event) {
			e.Changes.Claim = cmp.Or(e.Changes.Claim, now)
		}
	}
	hubChanged := func(e *index.Entry, now time.Time) { e.Changes.Hub = cmp.Or(e.Changes.Hub, now) }

	for _, tc := range []struct {
		reason     string
		do         func(m *Metrics, e *index.Entry)
		up, down   float64 // the sum of seconds; -1 for nothing observed
		stillWaits bool
	}{
		{"A new claim is carried.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, 3, -1, false},
		{"The oldest change counts.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			reported(e, edited, at(2))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, 3, -1, false},
		{"A change that comes while the claim is carried counts from when it came.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			s := e.Changes
			m.ObservePushed(req.ClusterName, e, s, at(1))
			reported(e, edited, at(2))
			e.Changes.Settle(s)
			m.ObservePushed(req.ClusterName, e, e.Changes, at(6))
		}, 1 + 4, -1, false},
		{"What was there before is not timed.", func(m *Metrics, e *index.Entry) {
			reported(e, with(added, func(e *kindwatch.Event) { e.Initial = true }), at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, -1, -1, false},
		{"Nor is what the manager wrote itself.", func(m *Metrics, e *index.Entry) {
			reported(e, with(edited, func(e *kindwatch.Event) { e.SelfInduced = true }), at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, -1, -1, false},
		{"Nor a change of the status.", func(m *Metrics, e *index.Entry) {
			reported(e, with(edited, func(e *kindwatch.Event) { e.Old = claim(2) }), at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, -1, -1, false},
		{"Nor a claim that goes.", func(m *Metrics, e *index.Entry) {
			reported(e, with(edited, func(e *kindwatch.Event) { e.Type = kindwatch.Deleted }), at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, -1, -1, false},
		{"A reconcile that has nothing to carry ends the wait.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			s := e.Changes
			e.Changes.Settle(s)
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
		}, -1, -1, false},
		{"What is written again has been carried.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(9))
		}, 3, -1, false},
		{"The status is shown.", func(m *Metrics, e *index.Entry) {
			hubChanged(e, at(0))
			hubChanged(e, at(1))
			m.ObserveShown(req.ClusterName, e, e.Changes, at(2))
		}, -1, 2, false},
		{"The ways are timed apart.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			hubChanged(e, at(1))
			m.ObserveShown(req.ClusterName, e, e.Changes, at(2))
		}, -1, 1, true},
		{"A cluster leaves nothing.", func(m *Metrics, e *index.Entry) {
			reported(e, added, at(0))
			m.ObservePushed(req.ClusterName, e, e.Changes, at(3))
			m.ForgetCluster(req.ClusterName)
		}, -1, -1, false},
	} {
		registry := prometheus.NewPedanticRegistry()
		m := New(registry)
		e := &index.Entry{}
		tc.do(m, e)
		for name, want := range map[string]float64{
			"masthead_agent_claim_to_hub_seconds": tc.up, "masthead_agent_hub_to_status_seconds": tc.down,
		} {
			if got := histogramSum(t, registry, name); got != want {
				t.Errorf("%s\n%s: want %v, got %v", tc.reason, name, want, got)
			}
		}
		if waits := e.Changes != (index.Changes{}); waits != tc.stillWaits {
			t.Errorf("%s\na change waits: want %v, got %v", tc.reason, tc.stillWaits, waits)
		}
		if n, err := testutil.GatherAndCount(registry, "masthead_agent_claim_to_hub_seconds"); err != nil || n > 1 {
			t.Errorf("%s\nwant one histogram at most, got %d, %v", tc.reason, n, err)
		}
	}
}

// histogramSum is the sum of what a histogram observed; -1 if it observed nothing.
func histogramSum(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	return -1
}
