// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
)

// What is counted by masthead_agent_writes_total.
const (
	writeFinalizer  = "finalizer"
	writeLateFields = "late-fields"
	writeAnnotation = "annotation"
	writeClaim      = "claim"
	writeStatus     = "status"
	writeSecret     = "secret"
	writeDeletion   = "deletion"
	writeRelease    = "release"
)

// Metrics publishes what the agent does:
//
//   - masthead_agent_requirements{cluster,reason}: claims, by the reason of their condition AgentSynced;
//   - masthead_agent_writes_total{cluster,write}: writes to the cluster (finalizer, annotation, late-fields, status,
//     secret) and to the hub for the cluster (claim, deletion, release);
//   - masthead_agent_definition_served{cluster,crd}: 1 if the definition of a claim kind that is offered to the cluster
//     is there as it is in the hub, 0 if it was refused;
//   - masthead_agent_orphans{cluster}: see orphans.
//
// Series of a cluster are deleted when it is disengaged. A nil *Metrics publishes nothing.
type Metrics struct {
	requirements *prometheus.GaugeVec
	writes       *prometheus.CounterVec
	definitions  *prometheus.GaugeVec

	mu sync.Mutex
	// reasons is what each claim was last counted as.
	reasons request.Map[string]
}

// NewMetrics registers the metrics of this package. It panics if they are registered there already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		requirements: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_agent_requirements",
			Help: "Claims of a workload cluster, by cluster and reason of their condition AgentSynced.",
		}, []string{"cluster", "reason"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_agent_writes_total",
			Help: "Writes of the agent to a workload cluster, or to the hub for it, by cluster and what was written.",
		}, []string{"cluster", "write"}),
		definitions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_agent_definition_served",
			Help: "Whether a CustomResourceDefinition that is offered to a workload cluster is there as in the hub, by cluster and crd.",
		}, []string{"cluster", "crd"}),
		reasons: request.Map[string]{},
	}
	reg.MustRegister(m.requirements, m.writes, m.definitions)
	return m
}

func (m *Metrics) wrote(cluster mcr.ClusterName, what string) {
	if m != nil {
		m.writes.WithLabelValues(cluster.String(), what).Inc()
	}
}

// requirement counts a claim under a reason; under none if the reason is empty.
func (m *Metrics) requirement(r request.Request, reason string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, _ := m.reasons.Get(r)
	if before == reason {
		return
	}
	if before != "" {
		m.requirements.WithLabelValues(r.ClusterName.String(), before).Dec()
	}
	if reason == "" {
		m.reasons.Delete(r)
		return
	}
	m.reasons.Set(r, reason)
	m.requirements.WithLabelValues(r.ClusterName.String(), reason).Inc()
}

// Definition notes whether a definition that is offered to a cluster is there as it is in the hub.
func (m *Metrics) Definition(cluster mcr.ClusterName, crd string, served bool) {
	if m == nil {
		return
	}
	value := 0.0
	if served {
		value = 1
	}
	m.definitions.WithLabelValues(cluster.String(), crd).Set(value)
}

// ForgetDefinition drops what was noted about a definition.
func (m *Metrics) ForgetDefinition(cluster mcr.ClusterName, crd string) {
	if m != nil {
		m.definitions.DeleteLabelValues(cluster.String(), crd)
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
	labels := prometheus.Labels{"cluster": cluster.String()}
	m.requirements.DeletePartialMatch(labels)
	m.writes.DeletePartialMatch(labels)
	m.definitions.DeletePartialMatch(labels)
}

func (m *Metrics) forgetRequests(name mcr.ClusterName, gone func(request.Request) bool) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for r, reason := range m.reasons[name] {
		if gone(r) {
			m.requirements.WithLabelValues(name.String(), reason).Dec()
		}
	}
	m.reasons.Forget(name, gone)
}
