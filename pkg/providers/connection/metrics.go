// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// Causes of a connection, values of the label "cause" beside those of package credentials.
const (
	causeFirst    = "first"
	causeProbe    = "probe"
	causeReEnroll = "re-enrolled"
)

// metrics are the metrics of all clusters. All but the duration have a cluster label and are deleted with the
// enrolment; the duration is one histogram for all clusters, since one for each would add a dozen series per cluster.
type metrics struct {
	state     *prometheus.GaugeVec
	connected *prometheus.GaugeVec
	failures  *prometheus.CounterVec
	connects  *prometheus.CounterVec
	throttled *prometheus.CounterVec
	watches   *prometheus.CounterVec
	paused    *prometheus.CounterVec
	refused   *prometheus.CounterVec
	held      *prometheus.GaugeVec
	panics    *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	duration  prometheus.Observer
	requests  *prometheus.CounterVec

	mu sync.Mutex
	// counts are the request counts of enrolled clusters.
	counts map[mcr.ClusterName]*transport.Counts
}

func newMetrics(reg prometheus.Registerer) *metrics {
	cluster := func(name, help string, labels ...metric.Label) metric.Definition {
		return metric.Definition{Name: name, Help: help, PerCluster: true, Labels: labels}
	}
	explained := func(d metric.Definition, page string) metric.Definition { d.See = page; return d }
	reason := metric.Label{Name: "reason", Values: "a reason of the connection"}
	return &metrics{
		state: metric.NewGauge(reg, explained(cluster("masthead_cluster_state",
			"1 for the current state of the connection of an enrolled cluster.",
			metric.Label{Name: "state", Values: join(StatePending, StateConnecting, StateConnected, StateDegraded, StateBackoff, StateDraining)},
		), "enrolment.md#connection-states")),
		connected: metric.NewGauge(reg, cluster("masthead_cluster_connected",
			"1 if an enrolled cluster is connected and its last probe succeeded, else 0.")),
		failures: metric.NewCounter(reg, explained(cluster("masthead_cluster_failures_total",
			"Probes and attempts to connect that failed.", reason), "enrolment.md#reasons")),
		connects: metric.NewCounter(reg, cluster("masthead_cluster_connects_total", "Connections established and tokens replaced.",
			metric.Label{Name: "cause", Values: causeFirst + "; " + causeReEnroll + " (after it was disconnected on purpose, for example " +
				"paused, while it stayed enrolled); " + causeProbe + " (after it was lost); " + credentials.CauseToken + "; " +
				credentials.CauseEndpoint + "; " + credentials.CauseCA + "; " + credentials.CauseClientCert + "; " + credentials.CauseTransport})),
		throttled: metric.NewCounter(reg, cluster("masthead_cluster_client_throttled_seconds_total",
			"Time that requests to a cluster waited for --cluster-qps. Absent until one has waited.")),
		watches: metric.NewCounter(reg, cluster("masthead_cluster_watches_started_total",
			"Watches of a cluster that were started. An API server ends each after five to ten minutes; a higher rate means that "+
				"watches restart.")),
		paused: metric.NewCounter(reg, cluster("masthead_cluster_watches_paused_seconds_total",
			"Time that watches and answers of a cluster were not read because it sends more than 2,000 events a second, 500 in the long "+
				"run (after 100,000), more than 8 MiB of answers a second, or more than its share of what is read of all clusters that send "+
				"much. Its API server has to wait; nothing is lost. After a minute of this, the condition WithinLimits is False with the "+
				"reason EventsDelayed.")),
		refused: metric.NewCounter(reg, cluster("masthead_cluster_answers_refused_total",
			"Answers of an API server that were refused before they were decoded, by the limit that they exceed.",
			metric.Label{Name: "limit", Values: "Bytes, Cost, Values, Depth, Key, String, Syntax, ContentType, ContentEncoding, " +
				"Redirect; Memory if its share of the memory budget is exceeded"})),
		held: metric.NewGauge(reg, explained(cluster("masthead_cluster_held",
			"1 for the reason why an enrolled cluster is not connected, or is about to be disconnected, if the reason is its enrolment "+
				"and not a fault of its API server. Absent otherwise.",
			metric.Label{Name: "reason", Values: fleetv1alpha1.ReasonPaused + ", " + fleetv1alpha1.ReasonNotReady + ", " + fleetv1alpha1.ReasonNoCredentials + ", " + fleetv1alpha1.ReasonClassNotFound +
				", " + fleetv1alpha1.ReasonNamespaceNotAllowed + ", " + fleetv1alpha1.ReasonClassFull + ", " + fleetv1alpha1.ReasonBadIdentifier},
		), "enrolment.md#reasons")),
		panics: metric.NewCounter(reg, explained(cluster("masthead_panics_total",
			"Panics while something of a cluster was handled. Each is a bug, and disconnects the cluster; the stack is in the "+
				"log."), "enrolment.md#reasons")),
		dropped: metric.NewCounter(reg, cluster("masthead_cluster_events_dropped_total",
			"Events that were not written to a cluster, because it refuses or does not answer them, or too many wait.")),
		duration: metric.NewHistogram(reg, metric.Definition{
			Name:    "masthead_cluster_probe_duration_seconds",
			Help:    "Duration of the health probes of all clusters.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}).WithLabelValues(),
		requests: metric.NewCounter(reg, cluster("masthead_cluster_requests_total",
			"Requests to the API server of a cluster. A watch counts as one, regardless of its duration. Requests that are not sent, because "+
				"the cluster is not connected, are not counted.",
			metric.Label{Name: "verb", Values: strings.Join(slices.Sorted(maps.Keys(transport.Verbs())), ", ") + "; " + transport.OtherVerb},
			metric.Label{Name: "code", Values: "the class of the status code: 1xx, 2xx, 3xx, 4xx, 5xx; " + transport.NoAnswer + " without an answer " +
				"or with one that was refused"})),
		counts: map[mcr.ClusterName]*transport.Counts{},
	}
}

// RegisterMetrics registers the metrics of this package without values, for the reference documentation.
func RegisterMetrics(reg prometheus.Registerer) { newMetrics(reg) }

// join lists states.
func join(states ...State) string {
	names := make([]string, 0, len(states))
	for _, s := range states {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// setState replaces the series of the previous state.
func (m *metrics) setState(name mcr.ClusterName, old, now State) {
	if old != "" && old != now {
		m.state.DeleteLabelValues(metric.ClusterValues(name, string(old))...)
	}
	m.state.WithLabelValues(metric.ClusterValues(name, string(now))...).Set(1)
	up := 0.0
	if now == StateConnected {
		up = 1
	}
	m.connected.WithLabelValues(metric.ClusterValues(name)...).Set(up)
}

// setHeld replaces the series of the previous reason for holding an enrolment.
func (m *metrics) setHeld(r *record) {
	reason := ""
	if r.held != nil {
		reason = r.held.Reason
	}
	if r.heldShown == reason {
		return
	}
	m.held.DeleteLabelValues(metric.ClusterValues(r.name, r.heldShown)...)
	if reason != "" {
		m.held.WithLabelValues(metric.ClusterValues(r.name, reason)...).Set(1)
	}
	r.heldShown = reason
}

func (m *metrics) failed(name mcr.ClusterName, reason string) {
	m.failures.WithLabelValues(metric.ClusterValues(name, reason)...).Inc()
}

// connectedBy counts a connection. The series for lost connections starts at zero, because Prometheus does not see the
// increase with which a series begins.
func (m *metrics) connectedBy(name mcr.ClusterName, cause string) {
	m.connects.WithLabelValues(metric.ClusterValues(name, causeProbe)...).Add(0)
	m.connects.WithLabelValues(metric.ClusterValues(name, cause)...).Inc()
}

func (m *metrics) waited(name mcr.ClusterName, d time.Duration) {
	m.throttled.WithLabelValues(metric.ClusterValues(name)...).Add(d.Seconds())
}

// watchCounter counts the watches of one connection. A request still in flight when the series is deleted adds to a
// detached counter; it does not re-create the series.
func (m *metrics) watchCounter(name mcr.ClusterName) prometheus.Counter {
	return m.watches.WithLabelValues(metric.ClusterValues(name)...)
}

// pauseCounter counts, like watchCounter, how long watches of one connection were not read.
func (m *metrics) pauseCounter(name mcr.ClusterName) prometheus.Counter {
	return m.paused.WithLabelValues(metric.ClusterValues(name)...)
}

// panicCounter counts the panics of one cluster. The caller ensures that the cluster is enrolled.
func (m *metrics) panicCounter(name mcr.ClusterName) prometheus.Counter {
	return m.panics.WithLabelValues(metric.ClusterValues(name)...)
}

// dropCounter counts, like watchCounter, the events that one connection does not write.
func (m *metrics) dropCounter(name mcr.ClusterName) prometheus.Counter {
	return m.dropped.WithLabelValues(metric.ClusterValues(name)...)
}

// requestCounts counts the requests to a cluster until it is forgotten.
func (m *metrics) requestCounts(name mcr.ClusterName) *transport.Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts[name]
	if c == nil {
		c = transport.NewCounts(m.requests, name)
		m.counts[name] = c
	}
	return c
}

// forget deletes every series of a cluster.
func (m *metrics) forget(name mcr.ClusterName) {
	l := metric.ClusterLabels(name)
	m.state.DeletePartialMatch(l)
	m.connected.DeletePartialMatch(l)
	m.failures.DeletePartialMatch(l)
	m.connects.DeletePartialMatch(l)
	m.throttled.DeletePartialMatch(l)
	m.watches.DeletePartialMatch(l)
	m.paused.DeletePartialMatch(l)
	m.refused.DeletePartialMatch(l)
	m.held.DeletePartialMatch(l)
	m.panics.DeletePartialMatch(l)
	m.dropped.DeletePartialMatch(l)
	m.mu.Lock()
	counts := m.counts[name]
	delete(m.counts, name)
	m.mu.Unlock()
	counts.End()
	m.requests.DeletePartialMatch(l)
}
