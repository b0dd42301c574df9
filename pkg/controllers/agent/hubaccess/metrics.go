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

// RegisterMetrics publishes how many identities of each cluster are in use in the hub. It panics if it is registered
// already. The claims' conditions show which ones: with names of Secrets and ServiceAccounts as labels, a cluster could
// create series.
func RegisterMetrics(reg prometheus.Registerer, i *Clients) {
	metric.RegisterGauges(reg, metric.Definition{
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
	}, func(emit func(float64, ...string)) {
		for s, n := range i.standings() { // No lock is held while a metric is sent.
			emit(n, metric.ClusterValues(s.cluster, s.reason)...)
		}
	})
}

// standing is a cluster, and the usability of an identity.
type standing struct {
	cluster mcr.ClusterName
	reason  string
}

// standings counts the cached identities.
func (i *Clients) standings() map[standing]float64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	counts := map[standing]float64{}
	for cluster, of := range i.entries {
		for _, e := range of {
			counts[standing{cluster, e.standing()}]++
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
