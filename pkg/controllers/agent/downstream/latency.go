// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// Latencies are measured by the manager's own clock alone, from the watch event of a change to the other side's answer
// to the resulting write. Objects' timestamps are not used: they have whole seconds, and the owner of a workload
// cluster can set any. Delays before the watch event, in the API server and on the network, are not included.
//
// The oldest unanswered change counts. Changes that need no write are dropped, and so are those that wait for a user,
// such as a claim in conflict: the time until a person acts is not the manager's.

// latencies holds the histograms.
type latencies struct {
	claimToHub, hubToStatus *prometheus.HistogramVec
}

func newLatencies(reg prometheus.Registerer) latencies {
	// Six buckets for each cluster: one series each, and three more.
	buckets := []float64{.25, 1, 5, 15, 60, 300}
	return latencies{
		claimToHub: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_agent_claim_to_hub_seconds",
			Help: "Time from when the watch of a workload cluster reported a claim that is new or whose spec changed, until the hub " +
				"answered the write that carries it. The time includes retries and waiting for a worker. Claims that existed before the " +
				"manager started, and claims that are held up by a problem of their own, are not counted.",
			PerCluster: true,
			Buckets:    buckets,
		}),
		hubToStatus: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_agent_hub_to_status_seconds",
			Help: "Time from when the watch of the hub reported a change of a claim's object, until the workload cluster answered the " +
				"write of the status that shows it. A change that the status does not show is not counted. The first status of a claim " +
				"waits a moment, so that more of it is written at once.",
			PerCluster: true,
			Buckets:    buckets,
		}),
	}
}

// Changes are the times since which the claim, and its object in the hub, differ from the other side; zero if they do
// not.
type Changes struct {
	claim, Hub time.Time
}

// ClaimChanged records a watch event of a workload cluster that is news to the hub.
func (m *Metrics) ClaimChanged(req multicluster.ObjectRequest, now time.Time) {
	if m != nil {
		m.noteChange(req, func(c *Changes) { c.claim = earlier(c.claim, now) })
	}
}

// ChangesClaim reports whether a watch event of a workload cluster is news to the hub.
func ChangesClaim(e kindwatch.Event) bool {
	return !e.Initial && !e.SelfInduced && e.Type != kindwatch.Deleted && e.Object.GetDeletionTimestamp() == nil &&
		(e.Old == nil || e.Old.GetGeneration() != e.Object.GetGeneration())
}

// HubChanged records a watch event of the hub that changes a claim's object.
func (m *Metrics) HubChanged(req multicluster.ObjectRequest, now time.Time) {
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

func (m *Metrics) noteChange(req multicluster.ObjectRequest, change func(*Changes)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, _ := m.changed.Get(req)
	change(&c)
	m.changed.Set(req, c)
}

// TakeChanges returns the changes that a reconcile beginning now will have seen.
func (m *Metrics) TakeChanges(req multicluster.ObjectRequest) Changes {
	if m == nil {
		return Changes{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, _ := m.changed.Get(req)
	return c
}

// ObservePushed records that the hub matches the claim.
func (m *Metrics) ObservePushed(req multicluster.ObjectRequest, seen Changes, now time.Time) {
	if m != nil && !seen.claim.IsZero() {
		m.latencies.claimToHub.WithLabelValues(metric.ClusterValues(req.ClusterName)...).Observe(now.Sub(seen.claim).Seconds())
		m.Discard(req, Changes{claim: seen.claim})
	}
}

// ObserveShown records that the claim shows the hub's status.
func (m *Metrics) ObserveShown(req multicluster.ObjectRequest, seen Changes, now time.Time) {
	if m != nil && !seen.Hub.IsZero() {
		m.latencies.hubToStatus.WithLabelValues(metric.ClusterValues(req.ClusterName)...).Observe(now.Sub(seen.Hub).Seconds())
		m.Discard(req, Changes{Hub: seen.Hub})
	}
}

// Discard drops changes that were answered, or need no answer. Newer ones stay.
func (m *Metrics) Discard(req multicluster.ObjectRequest, answered Changes) {
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
