// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Causes of a connection, values of the label "cause" beside those of package credentials.
const (
	causeFirst    = "first"
	causeProbe    = "probe"
	causeReEnroll = "re-enrolled"
)

// metrics are the series of every cluster. All but the duration carry the label "cluster" and are deleted with the
// enrolment; durations are kept for all clusters together, since a histogram for each would be a dozen series for each.
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
	duration  prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_cluster_state",
			Help: "1 for the state in which the connection of an enrolled cluster is.",
		}, []string{"cluster", "state"}),
		connected: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_cluster_connected",
			Help: "1 if an enrolled cluster is connected and its last probe succeeded, else 0.",
		}, []string{"cluster"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_cluster_failures_total",
			Help: "Probes and attempts to connect that failed, by reason.",
		}, []string{"cluster", "reason"}),
		connects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_cluster_connects_total",
			Help: "Connections made and tokens swapped, by cause: first, re-enrolled, probe (connected again after it was lost), token, endpoint, ca, client-cert, transport.",
		}, []string{"cluster", "cause"}),
		throttled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_cluster_client_throttled_seconds_total",
			Help: "Time that requests to a cluster waited for this manager's own rate limit.",
		}, []string{"cluster"}),
		watches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_cluster_watches_started_total",
			Help: "WATCH requests sent to a cluster. An API server ends each after five to ten minutes; more than that many means that informers restart.",
		}, []string{"cluster"}),
		paused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_cluster_watches_paused_seconds_total",
			Help: "Time that watches and answers of a cluster were not read because it sends more than is read in a second.",
		}, []string{"cluster"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_cluster_answers_refused_total",
			Help: "Answers of an API server that were refused before they were decoded, by limit: Bytes, Cost, Values, Depth, Key, String, Syntax, ContentType, ContentEncoding, Redirect; and Memory for want of a share.",
		}, []string{"cluster", "limit"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_cluster_held",
			Help: "1 for the reason why an enrolled cluster is not connected, or is about to be disconnected, without a fault of its API server.",
		}, []string{"cluster", "reason"}),
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_panics_total",
			Help: "Panics while something of a cluster was handled. Each is a bug; it costs the cluster its connection.",
		}, []string{"cluster"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "masthead_cluster_probe_duration_seconds",
			Help:    "Duration of the health probes of all clusters.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5},
		}),
	}
	if reg != nil {
		reg.MustRegister(m.state, m.connected, m.failures, m.connects, m.throttled, m.watches, m.paused, m.refused, m.held, m.panics, m.duration)
	}
	return m
}

// setState replaces the series of the state before.
func (m *metrics) setState(name mcr.ClusterName, old, now State) {
	if old != "" && old != now {
		m.state.DeleteLabelValues(string(name), string(old))
	}
	m.state.WithLabelValues(string(name), string(now)).Set(1)
	up := 0.0
	if now == StateConnected {
		up = 1
	}
	m.connected.WithLabelValues(string(name)).Set(up)
}

// setHeld replaces the series of what held an enrolment before.
func (m *metrics) setHeld(r *record) {
	reason := ""
	if r.held != nil {
		reason = r.held.reason
	}
	if r.heldShown == reason {
		return
	}
	m.held.DeleteLabelValues(string(r.name), r.heldShown)
	if reason != "" {
		m.held.WithLabelValues(string(r.name), reason).Set(1)
	}
	r.heldShown = reason
}

func (m *metrics) failed(name mcr.ClusterName, reason string) {
	m.failures.WithLabelValues(string(name), reason).Inc()
}

func (m *metrics) connectedBy(name mcr.ClusterName, cause string) {
	m.connects.WithLabelValues(string(name), cause).Inc()
}

func (m *metrics) waited(name mcr.ClusterName, d time.Duration) {
	m.throttled.WithLabelValues(string(name)).Add(d.Seconds())
}

// watchesOf counts the watches of one connection. A request that is still under way when the series is deleted adds to
// a counter that nobody reads any more; it does not bring the series back.
func (m *metrics) watchesOf(name mcr.ClusterName) prometheus.Counter {
	return m.watches.WithLabelValues(string(name))
}

// pausesOf counts like watchesOf for how long watches of one connection were not read.
func (m *metrics) pausesOf(name mcr.ClusterName) prometheus.Counter {
	return m.paused.WithLabelValues(string(name))
}

// panicsOf counts the panics of one cluster, as watchesOf does watches.
func (m *metrics) panicsOf(name mcr.ClusterName) prometheus.Counter {
	return m.panics.WithLabelValues(string(name))
}

// forget deletes every series of a cluster.
func (m *metrics) forget(name mcr.ClusterName) {
	l := prometheus.Labels{"cluster": string(name)}
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
}
