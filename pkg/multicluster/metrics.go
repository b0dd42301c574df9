// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Metrics publishes what the fair queues of a manager do:
//
//   - masthead_queue_depth{controller,cluster}: items that are due and wait for a worker or for their cluster's gate;
//   - masthead_queue_hanging{controller,cluster}: 1 while the cluster has a penalty because one of its items hung, else
//     0;
//   - masthead_queue_wait_seconds{controller}: how long items waited for a worker, without the time for which their
//     cluster's gate was closed, and without the items of clusters that have a penalty.
//
// The gauges are read from the queues when it is collected, so that a series exists exactly as long as its cluster is
// known to the Gate, and no cluster that left can be left behind. (multicluster-runtime and controller-runtime publish
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

// depthSource is a queue that tells how each of its clusters stands.
type depthSource interface {
	// standings returns a snapshot.
	standings() map[mcr.ClusterName]standing
}

// standing is how a cluster stands in a queue.
type standing struct {
	// depth is the number of items that are due and not in flight.
	depth int
	// hanging is whether one of its items hung not long ago.
	hanging bool
}

// NewMetrics registers the metrics of this package. It panics if they are registered there already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		depth: prometheus.NewDesc("masthead_queue_depth",
			"Items of a cluster that are due and wait for a worker or for the cluster, by controller and cluster.",
			[]string{"controller", "cluster"}, nil),
		hanging: prometheus.NewDesc("masthead_queue_hanging",
			"1 if an item of a cluster hung not long ago, so that the cluster has one worker for a while, by controller and cluster.",
			[]string{"controller", "cluster"}, nil),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "masthead_queue_wait_seconds",
			Help:    "How long an item of a connected cluster waited for a worker after it became due, by controller.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"controller"}),
		queues: map[string]depthSource{},
	}
	reg.MustRegister(m)
	return m
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	c <- m.depth
	c <- m.hanging
	m.wait.Describe(c)
}

// Collect implements prometheus.Collector. Whoever scrapes may read slowly or not at all, so that no lock is held while
// a metric is sent: a lock of a queue would stop its workers.
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	m.wait.Collect(c)
	m.mu.Lock()
	queues := maps.Clone(m.queues)
	m.mu.Unlock()
	for controller, q := range queues {
		for cluster, s := range q.standings() {
			name, hanging := displayName(cluster), 0.0
			if s.hanging {
				hanging = 1
			}
			c <- prometheus.MustNewConstMetric(m.depth, prometheus.GaugeValue, float64(s.depth), controller, name)
			c <- prometheus.MustNewConstMetric(m.hanging, prometheus.GaugeValue, hanging, controller, name)
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
