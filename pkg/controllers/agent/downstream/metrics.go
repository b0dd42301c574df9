// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/multicluster"
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

// Metrics publishes what the agent does. Series of a cluster are deleted when it is disengaged. A nil *Metrics
// publishes nothing.
type Metrics struct {
	// Requirements counts claims, by the reason of their condition AgentSynced.
	Requirements *prometheus.GaugeVec
	writes       *prometheus.CounterVec
	definitions  *prometheus.GaugeVec
	latencies    latencies

	mu sync.Mutex
	// changed holds the claims waiting to be pushed, or to show the hub's status.
	changed index.RequestMap[Changes]
	// reasons holds the reason under which each claim was last counted.
	reasons index.RequestMap[string]
}

// New registers the metrics of this package. It panics if they are registered there already.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		Requirements: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_agent_requirements",
			Help:       "Claims of a workload cluster, by the reason of their condition AgentSynced.",
			PerCluster: true,
			Labels:     []metric.Label{{Name: "reason", Values: "the reason of the condition"}},
			See:        "claims.md#the-condition-agentsynced",
		}),
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
		latencies: newLatencies(reg),
		changed:   index.RequestMap[Changes]{},
		reasons:   index.RequestMap[string]{},
	}
	return m
}

// Wrote counts a write to a cluster, or to the hub for it.
func (m *Metrics) Wrote(cluster mcr.ClusterName, what string) {
	if m != nil {
		m.writes.WithLabelValues(metric.ClusterValues(cluster, what)...).Inc()
	}
}

// Requirement counts a claim under a reason; an empty reason stops counting it.
func (m *Metrics) Requirement(r multicluster.ObjectRequest, reason string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if reason == "" {
		m.changed.Delete(r)
	}
	before, _ := m.reasons.Get(r)
	if before == reason {
		return
	}
	if before != "" {
		m.Requirements.WithLabelValues(metric.ClusterValues(r.ClusterName, before)...).Dec()
	}
	if reason == "" {
		m.reasons.Delete(r)
		return
	}
	m.reasons.Set(r, reason)
	m.Requirements.WithLabelValues(metric.ClusterValues(r.ClusterName, reason)...).Inc()
}

// Definition records whether a definition offered to a cluster is there as in the hub.
func (m *Metrics) Definition(cluster mcr.ClusterName, crd string, served bool) {
	if m == nil {
		return
	}
	value := 0.0
	if served {
		value = 1
	}
	m.definitions.WithLabelValues(metric.ClusterValues(cluster, crd)...).Set(value)
}

// ForgetDefinition drops the series of a definition.
func (m *Metrics) ForgetDefinition(cluster mcr.ClusterName, crd string) {
	if m != nil {
		m.definitions.DeleteLabelValues(metric.ClusterValues(cluster, crd)...)
	}
}

// ForgetCluster deletes every series of a cluster.
func (m *Metrics) ForgetCluster(cluster mcr.ClusterName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reasons, cluster)
	delete(m.changed, cluster)
	labels := metric.ClusterLabels(cluster)
	m.Requirements.DeletePartialMatch(labels)
	m.writes.DeletePartialMatch(labels)
	m.definitions.DeletePartialMatch(labels)
	m.latencies.claimToHub.DeletePartialMatch(labels)
	m.latencies.hubToStatus.DeletePartialMatch(labels)
}

// ForgetRequests stops counting a cluster's claims that are gone.
func (m *Metrics) ForgetRequests(name mcr.ClusterName, gone func(multicluster.ObjectRequest) bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r, reason := range m.reasons[name] {
		if gone(r) {
			m.Requirements.WithLabelValues(metric.ClusterValues(name, reason)...).Dec()
		}
	}
	m.reasons.Forget(name, gone)
	m.changed.Forget(name, gone)
}
