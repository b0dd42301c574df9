// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"time"

	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// Latencies are measured by the manager's own clock alone, from the watch event of a change to the other side's answer
// to the resulting write. Objects' timestamps are not used: they have whole seconds, and the owner of a workload
// cluster can set any. Delays before the watch event, in the API server and on the network, are not included.
//
// The oldest unanswered change counts. Changes that need no write are dropped, and so are those that wait for a user,
// such as a claim in conflict: the time until a person acts is not the manager's.

// latencyBuckets are six for each cluster: one series each, and three more.
func latencyBuckets() []float64 { return []float64{.25, 1, 5, 15, 60, 300} }

// ChangesClaim reports whether a watch event of a workload cluster is news to the hub.
func ChangesClaim(e kindwatch.Event) bool {
	return !e.Initial && !e.SelfInduced && e.Type != kindwatch.Deleted && e.Object.GetDeletionTimestamp() == nil &&
		(e.Old == nil || e.Old.GetGeneration() != e.Object.GetGeneration())
}

// ObservePushed records that the hub matches the claim of an entry.
func (m *Metrics) ObservePushed(cluster mcr.ClusterName, e *index.Entry, seen index.Changes, now time.Time) {
	if !seen.Claim.IsZero() {
		m.claimToHub.WithLabelValues(metric.ClusterValues(cluster)...).Observe(now.Sub(seen.Claim).Seconds())
	}
	e.Changes.Settle(index.Changes{Claim: seen.Claim})
}

// ObserveShown records that the claim of an entry shows the hub's status.
func (m *Metrics) ObserveShown(cluster mcr.ClusterName, e *index.Entry, seen index.Changes, now time.Time) {
	if !seen.Hub.IsZero() {
		m.hubToStatus.WithLabelValues(metric.ClusterValues(cluster)...).Observe(now.Sub(seen.Hub).Seconds())
	}
	e.Changes.Settle(index.Changes{Hub: seen.Hub})
}
