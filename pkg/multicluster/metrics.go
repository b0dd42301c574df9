// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// Metrics publishes metrics of a manager's fair queues.
//
// The gauges are read from the queues on collection, so that a series exists exactly as long as its cluster is known to
// the Gate, and none is left behind by a cluster that left. (multicluster-runtime and controller-runtime publish
// nothing per cluster; Cluster API's cluster cache publishes series that it never deletes.)
//
// A nil *Metrics publishes nothing.
type Metrics struct {
	depth   *prometheus.Desc
	hanging *prometheus.Desc
	wait    *prometheus.HistogramVec

	mu     sync.Mutex
	queues map[string]depthSource
}

// depthSource is a queue that reports the standing of each of its clusters.
type depthSource interface {
	// standings returns a snapshot.
	standings() map[mcr.ClusterName]standing
}

// standing is the state of a cluster in a queue.
type standing struct {
	// depth is the number of items that are due and not in flight.
	depth int
	// hanging reports whether one of its items hung recently.
	hanging bool
}

// NewMetrics registers the metrics of this package. It panics if they are already registered there.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	controller := []metric.Label{{Name: "controller", Values: "the name of the controller"}}
	m := &Metrics{
		depth: metric.NewGaugeDesc(reg, metric.Definition{
			Name:       "masthead_queue_depth",
			Help:       "Items of a cluster that are due and wait for a worker, or for the cluster to be connected.",
			PerCluster: true,
			Labels:     controller,
		}),
		hanging: metric.NewGaugeDesc(reg, metric.Definition{
			Name:       "masthead_queue_hanging",
			Help:       "1 if an item of a cluster recently took more than two seconds, so that the cluster has only one worker for a while, else 0.",
			PerCluster: true,
			Labels:     controller,
			See:        "security.md#what-the-owner-of-one-workload-cluster-gains",
		}),
		wait: metric.NewHistogram(reg, metric.Definition{
			Name: "masthead_queue_wait_seconds",
			Help: "How long items of connected clusters waited for a worker after they became due. The time for which a cluster was " +
				"not connected, and items of clusters that hang, are not counted.",
			Labels:  controller,
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}),
		queues: map[string]depthSource{},
	}
	reg.MustRegister(m)
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	c <- m.depth
	c <- m.hanging
}

// Collect implements prometheus.Collector. No lock is held while a metric is sent, because a scraper may read slowly or
// not at all, and a held queue lock would stop its workers.
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	m.mu.Lock()
	queues := maps.Clone(m.queues)
	m.mu.Unlock()
	for controller, q := range queues {
		for cluster, s := range q.standings() {
			hanging := 0.0
			if s.hanging {
				hanging = 1
			}
			c <- prometheus.MustNewConstMetric(m.depth, prometheus.GaugeValue, float64(s.depth), metric.ClusterValues(cluster, controller)...)
			c <- prometheus.MustNewConstMetric(m.hanging, prometheus.GaugeValue, hanging, metric.ClusterValues(cluster, controller)...)
		}
	}
}

func (m *Metrics) addQueue(controller string, q depthSource) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[controller] = q
}

func (m *Metrics) removeQueue(controller string, q depthSource) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queues[controller] == q {
		delete(m.queues, controller)
		m.wait.DeleteLabelValues(controller)
	}
}

func (m *Metrics) observeWait(controller string, d time.Duration) {
	if m == nil {
		return
	}
	m.wait.WithLabelValues(controller).Observe(d.Seconds())
}
