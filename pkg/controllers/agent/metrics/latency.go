// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// Latencies are measured by the manager's own clock alone, from when a watch reports a change to when the other side
// has answered the write that follows from it. Timestamps of objects are not used: they have whole seconds, and those
// of a workload cluster are what its owner wants them to be. What happens before the watch reports, in the API server
// and on the way, is not in them.
//
// The oldest change that was not answered yet counts. What a reconcile finds to be no reason to write is forgotten, and
// so is what waits for somebody, such as a claim in conflict: the time until a person acts is not the manager's.

// latencies are the histograms.
type latencies struct {
	claimToHub, hubToStatus *prometheus.HistogramVec
}

func newLatencies(reg prometheus.Registerer) latencies {
	// Six buckets, for each cluster: a series each, and three more.
	buckets := []float64{.25, 1, 5, 15, 60, 300}
	return latencies{
		claimToHub: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_agent_claim_to_hub_seconds",
			Help: "Time from when the watch of a workload cluster reported a claim that is new or whose spec changed, until the hub " +
				"answered the write that carries it. Waiting for a worker and retries are in it; claims that were there before the manager, " +
				"and those that something of theirs hinders, are not.",
			PerCluster: true,
			Buckets:    buckets,
		}),
		hubToStatus: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_agent_hub_to_status_seconds",
			Help: "Time from when the watch of the hub reported a change of a claim's object, until the workload cluster answered the " +
				"write of the status that shows it. A change that the status does not show is not counted. The first status of a claim " +
				"waits a moment for more of it.",
			PerCluster: true,
			Buckets:    buckets,
		}),
	}
}

// Changes are since when a claim, and its object in the hub, are other than the other side shows; zero if they are not.
type Changes struct {
	claim, Hub time.Time
}

// ClaimChanged notes that the watch of a workload cluster reported what is news to the hub.
func (m *Metrics) ClaimChanged(req request.Request, now time.Time) {
	if m != nil {
		m.noteChange(req, func(c *Changes) { c.claim = earlier(c.claim, now) })
	}
}

// ChangesClaim is whether what a watch of a workload cluster reported is news to the hub.
func ChangesClaim(e kindwatch.Event) bool {
	return !e.Initial && !e.SelfInduced && e.Type != kindwatch.Deleted && e.Object.GetDeletionTimestamp() == nil &&
		(e.Old == nil || e.Old.GetGeneration() != e.Object.GetGeneration())
}

// HubChanged notes that the watch of the hub reported a change of a claim's object.
func (m *Metrics) HubChanged(req request.Request, now time.Time) {
	if m != nil {
		m.noteChange(req, func(c *Changes) { c.Hub = earlier(c.Hub, now) })
	}
}

func earlier(before, now time.Time) time.Time {
	if before.IsZero() {
		return now
	}
	return before
}

func (m *Metrics) noteChange(req request.Request, change func(*Changes)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, _ := m.changed.Get(req)
	change(&c)
	m.changed.Set(req, c)
}

// ChangesOf are those that a reconcile that begins will have seen.
func (m *Metrics) ChangesOf(req request.Request) Changes {
	if m == nil {
		return Changes{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, _ := m.changed.Get(req)
	return c
}

// Carried notes that the hub has what the claim says.
func (m *Metrics) Carried(req request.Request, seen Changes, now time.Time) {
	if m != nil && !seen.claim.IsZero() {
		m.latencies.claimToHub.WithLabelValues(metric.ClusterValues(req.ClusterName)...).Observe(now.Sub(seen.claim).Seconds())
		m.Settle(req, Changes{claim: seen.claim})
	}
}

// Shown notes that the claim shows what the hub says.
func (m *Metrics) Shown(req request.Request, seen Changes, now time.Time) {
	if m != nil && !seen.Hub.IsZero() {
		m.latencies.hubToStatus.WithLabelValues(metric.ClusterValues(req.ClusterName)...).Observe(now.Sub(seen.Hub).Seconds())
		m.Settle(req, Changes{Hub: seen.Hub})
	}
}

// Settle forgets changes that were answered, or need no answer. One that came meanwhile stays.
func (m *Metrics) Settle(req request.Request, answered Changes) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, known := m.changed.Get(req)
	if !known {
		return
	}
	if c.claim.Equal(answered.claim) {
		c.claim = time.Time{}
	}
	if c.Hub.Equal(answered.Hub) {
		c.Hub = time.Time{}
	}
	if c == (Changes{}) {
		m.changed.Delete(req)
		return
	}
	m.changed.Set(req, c)
}
