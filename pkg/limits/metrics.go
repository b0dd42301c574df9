// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// collector publishes the usage of the budget.
type collector struct {
	budget                   *Budget
	capacity, used, clusters *prometheus.Desc
}

// RegisterMetrics publishes the usage of a budget.
func RegisterMetrics(reg prometheus.Registerer, b *Budget) error {
	err := reg.Register(&collector{
		budget: b,
		capacity: metric.NewGaugeDesc(reg, metric.Definition{
			Name: "masthead_memory_budget_bytes",
			Help: "Size of the memory budget, which is shared by what is kept of all workload clusters' objects and by their answers " +
				"in flight.",
		}),
		used: metric.NewGaugeDesc(reg, metric.Definition{
			Name: "masthead_memory_budget_used_bytes",
			Help: "Estimated use of the memory budget.",
		}),
		clusters: metric.NewGaugeDesc(reg, metric.Definition{
			Name: "masthead_cluster_memory_bytes",
			Help: "Estimated use of the memory budget on behalf of a connected cluster. For the Nodes of the clusters that a namespace " +
				"imports, the name of the cluster is ClusterImports/ and the namespace, without a namespace and a source.",
			PerCluster: true,
		}),
	})
	if err != nil {
		return fmt.Errorf("cannot register the metrics of the memory budget: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.capacity
	ch <- c.used
	ch <- c.clusters
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	used, all := c.budget.Used()
	ch <- prometheus.MustNewConstMetric(c.capacity, prometheus.GaugeValue, float64(c.budget.Capacity()))
	ch <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(used))
	byCluster := map[mcr.ClusterName]int64{} // A cluster can have two connections for a moment.
	for _, u := range all {
		byCluster[mcr.ClusterName(u.Cluster)] += u.Bytes
	}
	for cluster, bytes := range byCluster {
		ch <- prometheus.MustNewConstMetric(c.clusters, prometheus.GaugeValue, float64(bytes), metric.ClusterValues(cluster)...)
	}
}
