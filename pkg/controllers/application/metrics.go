// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// What is counted by masthead_application_writes_total.
const (
	writeStatus      = "status"
	writeOwner       = "owner-reference"
	writeHealthCheck = "health-check"
	writeDefinition  = "definition"
)

// Values of the label state of masthead_application_components.
const (
	stateWanted    = "wanted"
	stateInstalled = "installed"
)

// Metrics publishes how Applications fare:
//
//   - masthead_applications{cluster,health}: Applications in each state, also where there are none in it, while the
//     cluster has Applications at all;
//   - masthead_application_components{cluster,state}: components that Applications name (wanted), and those of them
//     that are installed;
//   - masthead_application_writes_total{cluster,write}: writes to the cluster.
//
// And, if asked for, for each Application, which is as many series as people make Applications:
//
//   - masthead_application_health{cluster,namespace,name,health}: 1 for the state that it is in, no series for others;
//   - masthead_application_ready{cluster,namespace,name}: 1 if its health check is ready, 0 if not, no series if that
//     is unknown;
//   - masthead_application_components_wanted and masthead_application_components_installed{cluster,namespace,name}.
//
// The series of an Application are deleted when it is forgotten, those of a cluster when the cluster is. A nil *Metrics
// publishes nothing.
type Metrics struct {
	applications *prometheus.GaugeVec
	components   *prometheus.GaugeVec
	writes       *prometheus.CounterVec

	// each is nil unless every Application has series of its own.
	each *applicationSeries

	mu sync.Mutex
	// clusters is what was last told about each Application.
	clusters map[mcr.ClusterName]map[applicationKey]counted
}

// counted is what an Application was last counted as.
type counted struct {
	health            appsv1alpha1.Health
	wanted, installed int32
}

// NewMetrics registers the metrics of this package; perApplication adds series for each Application. It panics if they
// are registered there already.
func NewMetrics(reg prometheus.Registerer, perApplication bool) *Metrics {
	m := &Metrics{
		applications: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_applications",
			Help: "Applications of a workload cluster, by cluster and health.",
		}, []string{"cluster", "health"}),
		components: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_application_components",
			Help: "Components that the Applications of a workload cluster name, and those of them that are installed, by cluster and state.",
		}, []string{"cluster", "state"}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "masthead_application_writes_total",
			Help: "Writes to a workload cluster because of its Applications, by cluster and what was written.",
		}, []string{"cluster", "write"}),
		clusters: map[mcr.ClusterName]map[applicationKey]counted{},
	}
	reg.MustRegister(m.applications, m.components, m.writes)
	if perApplication {
		m.each = newApplicationSeries(reg)
	}
	return m
}

// wrote counts a write to a cluster.
func (m *Metrics) wrote(cluster mcr.ClusterName, what string) {
	if m != nil {
		m.writes.WithLabelValues(cluster.String(), what).Inc()
	}
}

// application tells how an Application fares now.
func (m *Metrics) application(cluster mcr.ClusterName, key applicationKey, s summary) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := counted{health: knownHealth(s.health), wanted: s.wanted, installed: s.installed}
	known := m.clusters[cluster]
	if known == nil {
		known = map[applicationKey]counted{}
		m.clusters[cluster] = known
		for _, h := range healthStates() {
			m.applications.WithLabelValues(cluster.String(), string(h)).Set(0)
		}
	}
	before, counted := known[key]
	if counted {
		m.add(cluster, before, -1)
	}
	known[key] = now
	m.add(cluster, now, 1)
	m.each.set(cluster, key, s.ready, now)
}

// forget deletes the series of an Application.
func (m *Metrics) forget(cluster mcr.ClusterName, key applicationKey) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, counted := m.clusters[cluster][key]
	if !counted {
		return
	}
	m.each.forget(cluster, key)
	delete(m.clusters[cluster], key)
	if len(m.clusters[cluster]) == 0 {
		delete(m.clusters, cluster)
		m.deleteCounts(cluster)
		return
	}
	m.add(cluster, before, -1)
}

// forgetCluster deletes every series of a cluster.
func (m *Metrics) forgetCluster(cluster mcr.ClusterName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.clusters[cluster] {
		m.each.forget(cluster, key)
	}
	delete(m.clusters, cluster)
	m.deleteCounts(cluster)
	m.writes.DeletePartialMatch(prometheus.Labels{"cluster": cluster.String()})
}

func (m *Metrics) deleteCounts(cluster mcr.ClusterName) {
	labels := prometheus.Labels{"cluster": cluster.String()}
	m.applications.DeletePartialMatch(labels)
	m.components.DeletePartialMatch(labels)
}

func (m *Metrics) add(cluster mcr.ClusterName, c counted, sign float64) {
	m.applications.WithLabelValues(cluster.String(), string(c.health)).Add(sign)
	m.components.WithLabelValues(cluster.String(), stateWanted).Add(sign * float64(c.wanted))
	m.components.WithLabelValues(cluster.String(), stateInstalled).Add(sign * float64(c.installed))
}

// applicationSeries are the series that each Application has of its own. A nil *applicationSeries publishes nothing.
type applicationSeries struct {
	health            *prometheus.GaugeVec
	ready             *prometheus.GaugeVec
	wanted, installed *prometheus.GaugeVec
}

func newApplicationSeries(reg prometheus.Registerer) *applicationSeries {
	labels := []string{"cluster", "namespace", "name"}
	s := &applicationSeries{
		health: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_application_health",
			Help: "1 for the health that an Application has, by cluster, namespace, name and health.",
		}, append(labels, "health")),
		ready: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_application_ready",
			Help: "Whether the health check of an Application is ready, by cluster, namespace and name. Absent if that is unknown.",
		}, labels),
		wanted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_application_components_wanted",
			Help: "Components that an Application names, by cluster, namespace and name.",
		}, labels),
		installed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "masthead_application_components_installed",
			Help: "Components of an Application that are installed, by cluster, namespace and name.",
		}, labels),
	}
	reg.MustRegister(s.health, s.ready, s.wanted, s.installed)
	return s
}

func (s *applicationSeries) set(cluster mcr.ClusterName, key applicationKey, ready corev1.ConditionStatus, c counted) {
	if s == nil {
		return
	}
	at := []string{cluster.String(), key.Namespace, key.Name}
	for _, h := range healthStates() {
		if h != c.health {
			s.health.DeleteLabelValues(append(at, string(h))...)
		}
	}
	s.health.WithLabelValues(append(at, string(c.health))...).Set(1)
	switch ready {
	case corev1.ConditionTrue:
		s.ready.WithLabelValues(at...).Set(1)
	case corev1.ConditionFalse:
		s.ready.WithLabelValues(at...).Set(0)
	case corev1.ConditionUnknown:
		fallthrough
	default:
		s.ready.DeleteLabelValues(at...)
	}
	s.wanted.WithLabelValues(at...).Set(float64(c.wanted))
	s.installed.WithLabelValues(at...).Set(float64(c.installed))
}

func (s *applicationSeries) forget(cluster mcr.ClusterName, key applicationKey) {
	if s == nil {
		return
	}
	at := []string{cluster.String(), key.Namespace, key.Name}
	for _, h := range healthStates() {
		s.health.DeleteLabelValues(append(at, string(h))...)
	}
	s.ready.DeleteLabelValues(at...)
	s.wanted.DeleteLabelValues(at...)
	s.installed.DeleteLabelValues(at...)
}

// healthStates are the states that an Application can be in.
func healthStates() []appsv1alpha1.Health {
	return []appsv1alpha1.Health{
		appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing,
		appsv1alpha1.HealthUnknown, appsv1alpha1.HealthMissing, appsv1alpha1.HealthDegraded,
	}
}

// knownHealth keeps the label health bounded: whatever is not one of the states is Unknown.
func knownHealth(health appsv1alpha1.Health) appsv1alpha1.Health {
	for _, h := range healthStates() {
		if h == health {
			return h
		}
	}
	return appsv1alpha1.HealthUnknown
}
