// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/metric"
)

// applicationSeries are the series of individual Applications. A nil *applicationSeries publishes nothing.
type applicationSeries struct {
	health            *prometheus.GaugeVec
	ready             *prometheus.GaugeVec
	wanted, installed *prometheus.GaugeVec

	// without counts the Applications without series, because their cluster has more than seriesPerCluster.
	without *prometheus.GaugeVec
	known   map[mcr.ClusterName]*seriesOfCluster
}

// seriesOfCluster are the Applications of a cluster, with and without their own series.
type seriesOfCluster struct {
	with, without sets.Set[record.ApplicationKey]
}

func newApplicationSeries(reg prometheus.Registerer) *applicationSeries {
	// Not "namespace" and "name": the scraped target's label "namespace" would hide one of the metric.
	labels := []metric.Label{
		{Name: "application_namespace", Values: "the namespace of the Application"},
		{Name: "application_name", Values: "the name of the Application"},
	}
	const only = " Only with --application-metrics=PerApplication."
	return &applicationSeries{
		health: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_application_health",
			Help:       "1 for the current state of an Application, no series for the others." + only,
			PerCluster: true,
			Labels:     append(labels, healthLabel()),
		}),
		ready: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_application_ready",
			Help:       "1 if the health check of an Application is ready, 0 if not. Absent if that is unknown." + only,
			PerCluster: true,
			Labels:     labels,
		}),
		wanted: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_application_components_wanted",
			Help:       "Components that an Application names." + only,
			PerCluster: true,
			Labels:     labels,
		}),
		installed: metric.NewGauge(reg, metric.Definition{
			Name:       "masthead_application_components_installed",
			Help:       "Components of an Application that are installed." + only,
			PerCluster: true,
			Labels:     labels,
		}),
		without: metric.NewGauge(reg, metric.Definition{
			Name: "masthead_applications_without_series",
			Help: fmt.Sprintf("Applications that have no series of their own, because %d others of their cluster have them.%s",
				seriesPerCluster, only),
			PerCluster: true,
		}),
		known: map[mcr.ClusterName]*seriesOfCluster{},
	}
}

// admit reports whether an Application has its own series. The first seriesPerCluster of a cluster do.
func (s *applicationSeries) admit(cluster mcr.ClusterName, key record.ApplicationKey) bool {
	known := s.known[cluster]
	if known == nil {
		known = &seriesOfCluster{with: sets.New[record.ApplicationKey](), without: sets.New[record.ApplicationKey]()}
		s.known[cluster] = known
	}
	if known.with.Has(key) || known.with.Len() < seriesPerCluster {
		known.with.Insert(key)
		known.without.Delete(key)
	} else {
		known.without.Insert(key)
	}
	s.count(cluster)
	return known.with.Has(key)
}

// count publishes how many Applications of a cluster do not have their own series, if any.
func (s *applicationSeries) count(cluster mcr.ClusterName) {
	at, n := metric.ClusterValues(cluster), s.known[cluster].without.Len()
	if n == 0 {
		s.without.DeleteLabelValues(at...)
		return
	}
	s.without.WithLabelValues(at...).Set(float64(n))
}

func (s *applicationSeries) set(cluster mcr.ClusterName, key record.ApplicationKey, ready corev1.ConditionStatus, c counted) {
	if s == nil || !s.admit(cluster, key) {
		return
	}
	at := metric.ClusterValues(cluster, key.Namespace, key.Name)
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

func (s *applicationSeries) forget(cluster mcr.ClusterName, key record.ApplicationKey) {
	if s == nil || s.known[cluster] == nil {
		return
	}
	known := s.known[cluster]
	known.with.Delete(key)
	known.without.Delete(key)
	if known.with.Len()+known.without.Len() == 0 {
		s.forgetCluster(cluster)
		return
	}
	s.count(cluster)
	at := metric.ClusterValues(cluster, key.Namespace, key.Name)
	for _, h := range healthStates() {
		s.health.DeleteLabelValues(append(at, string(h))...)
	}
	s.ready.DeleteLabelValues(at...)
	s.wanted.DeleteLabelValues(at...)
	s.installed.DeleteLabelValues(at...)
}

// forgetCluster deletes the series of all Applications of a cluster.
func (s *applicationSeries) forgetCluster(cluster mcr.ClusterName) {
	if s == nil {
		return
	}
	delete(s.known, cluster)
	for _, vec := range []*prometheus.GaugeVec{s.health, s.ready, s.wanted, s.installed, s.without} {
		vec.DeletePartialMatch(metric.ClusterLabels(cluster))
	}
}
