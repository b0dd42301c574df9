// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// What masthead_agent_writes_total counts.
const (
	WriteFinalizer  = "finalizer"
	WriteLateFields = "late-fields"
	WriteAnnotation = "annotation"
	WriteClaim      = "claim"
	WriteStatus     = "status"
	WriteSecret     = "secret"
	WriteDeletion   = "deletion"
	WriteRelease    = "release"
)

// Metrics publishes what the agent does. Series of a cluster are deleted when it is disengaged.
type Metrics struct {
	writes                  *prometheus.CounterVec
	definitions             *prometheus.GaugeVec
	claimToHub, hubToStatus *prometheus.HistogramVec
}

// New registers the metrics of this package. It panics if they are registered there already.
func New(reg prometheus.Registerer) *Metrics {
	return &Metrics{
		writes: metric.NewCounter(reg, metric.Definition{
			Name:       "masthead_agent_writes_total",
			Help:       "Writes of the agent to a workload cluster, or to the hub for it.",
			PerCluster: true,
			Labels: []metric.Label{{Name: "write", Values: "to the cluster: " +
				strings.Join([]string{WriteFinalizer, WriteAnnotation, WriteLateFields, WriteStatus, WriteSecret}, ", ") +
				"; to the hub: " + strings.Join([]string{WriteClaim, WriteDeletion, WriteRelease}, ", ")}},
		}),
		definitions: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_agent_definition_served",
			Help:       "1 if the definition of a claim kind that is offered to a workload cluster exists there as in the hub, 0 if it was refused.",
			PerCluster: true,
			Labels:     []metric.Label{{Name: "crd", Values: "the name of the CustomResourceDefinition"}},
			See:        "claims.md#definitions",
		}),
		claimToHub: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_agent_claim_to_hub_seconds",
			Help: "Time from when the watch of a workload cluster reported a claim that is new or whose spec changed, until the hub " +
				"answered the write that carries it. The time includes retries and waiting for a worker. Claims that existed before the " +
				"manager started, and claims that are held up by a problem of their own, are not counted.",
			PerCluster: true,
			Buckets:    latencyBuckets(),
		}),
		hubToStatus: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_agent_hub_to_status_seconds",
			Help: "Time from when the watch of the hub reported a change of a claim's object, until the workload cluster answered the " +
				"write of the status that shows it. A change that the status does not show is not counted. The first status of a claim " +
				"waits a moment, so that more of it is written at once.",
			PerCluster: true,
			Buckets:    latencyBuckets(),
		}),
	}
}

// Wrote counts a write to a cluster, or to the hub for it.
func (m *Metrics) Wrote(cluster mcr.ClusterName, what string) {
	m.writes.WithLabelValues(metric.ClusterValues(cluster, what)...).Inc()
}

// Definition records whether a definition offered to a cluster is there as in the hub.
func (m *Metrics) Definition(cluster mcr.ClusterName, crd string, served bool) {
	value := 0.0
	if served {
		value = 1
	}
	m.definitions.WithLabelValues(metric.ClusterValues(cluster, crd)...).Set(value)
}

// ForgetDefinition drops the series of a definition.
func (m *Metrics) ForgetDefinition(cluster mcr.ClusterName, crd string) {
	m.definitions.DeleteLabelValues(metric.ClusterValues(cluster, crd)...)
}

// ForgetCluster deletes every series of a cluster.
func (m *Metrics) ForgetCluster(cluster mcr.ClusterName) {
	labels := metric.ClusterLabels(cluster)
	m.writes.DeletePartialMatch(labels)
	m.definitions.DeletePartialMatch(labels)
	m.claimToHub.DeletePartialMatch(labels)
	m.hubToStatus.DeletePartialMatch(labels)
}
