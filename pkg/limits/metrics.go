// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// RegisterMetrics publishes the usage of a budget. It panics if it is published already.
func RegisterMetrics(reg prometheus.Registerer, b *Budget) {
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_memory_budget_bytes",
		Help: "Size of the memory budget, which is shared by what is kept of all workload clusters' objects and by their answers " +
			"in flight.",
	}, func(emit func(value float64, labels ...string)) { emit(float64(b.Capacity())) })
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_memory_budget_used_bytes",
		Help: "Estimated use of the memory budget.",
	}, func(emit func(value float64, labels ...string)) {
		used, _ := b.Used()
		emit(float64(used))
	})
	metric.RegisterGauges(reg, metric.Definition{
		Name: "masthead_cluster_memory_bytes",
		Help: "Estimated use of the memory budget on behalf of a connected cluster. For the Nodes of the clusters that a namespace " +
			"imports, the name of the cluster is ClusterImports/ and the namespace, without a namespace and a source.",
		PerCluster: true,
	}, func(emit func(value float64, labels ...string)) {
		_, all := b.Used()
		byCluster := map[mcr.ClusterName]int64{} // A cluster can have two connections for a moment.
		for _, u := range all {
			byCluster[mcr.ClusterName(u.Cluster)] += u.Bytes
		}
		for cluster, bytes := range byCluster {
			emit(float64(bytes), metric.ClusterValues(cluster)...)
		}
	})
}
