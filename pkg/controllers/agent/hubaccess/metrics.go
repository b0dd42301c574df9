// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// usable is the reason of a usable identity.
const usable = "Usable"

// identityMetrics counts the identities in use on scrape. The claims' conditions show which ones: with names of Secrets
// and ServiceAccounts as labels, a cluster could create series.
type identityMetrics struct {
	clients *Clients
	desc    *prometheus.Desc
}

// RegisterMetrics publishes how many identities of each cluster are in use in the hub. It panics if it is registered
// already.
func RegisterMetrics(reg prometheus.Registerer, i *Clients) {
	reg.MustRegister(&identityMetrics{clients: i, desc: metric.NewGaugeDesc(reg, metric.Definition{
		Name: "masthead_agent_identities",
		Help: "Identities, other than the manager's own, that were used in the hub for claims of a workload cluster in the last ten " +
			"minutes, by whether they can be used. The source \"hub\" has the ServiceAccounts that classes name.",
		PerCluster: true,
		Labels: []metric.Label{{
			Name: "reason", Values: usable + ", or why not: " +
				fleetv1alpha1.ReasonCredentialsMissing + ", " + fleetv1alpha1.ReasonCredentialsInvalid +
				", " + fleetv1alpha1.ReasonCredentialsRejected + ", " + fleetv1alpha1.ReasonWorkloadRejected,
		}},
		See: "claims.md",
	})})
}

// Describe implements prometheus.Collector.
func (m *identityMetrics) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect implements prometheus.Collector. No lock is held while a metric is sent.
func (m *identityMetrics) Collect(ch chan<- prometheus.Metric) {
	for cluster, reasons := range m.clients.standings() {
		for why, n := range reasons {
			ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(n), metric.ClusterValues(cluster, why)...)
		}
	}
}

// standings counts the cached identities by cluster and by usability.
func (i *Clients) standings() map[mcr.ClusterName]map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	counts := map[mcr.ClusterName]map[string]int{}
	for cluster, of := range i.entries {
		for _, e := range of {
			if counts[cluster] == nil {
				counts[cluster] = map[string]int{}
			}
			counts[cluster][e.standing()]++
		}
	}
	return counts
}

func (e *identityEntry) standing() string {
	switch {
	case e.problem != nil:
		return e.problem.Reason
	case e.refused:
		return fleetv1alpha1.ReasonCredentialsRejected
	default:
		return usable
	}
}
