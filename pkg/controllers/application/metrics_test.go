// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
)

func TestMetrics(t *testing.T) {
	shop, blog := record.ApplicationKey{Namespace: "web", Name: "shop"}, record.ApplicationKey{Namespace: "web", Name: "blog"}
	well := rollup.Summary{Health: appsv1alpha1.HealthHealthy, Ready: corev1.ConditionTrue, Wanted: 3, Installed: 3}
	broken := rollup.Summary{Health: appsv1alpha1.HealthDegraded, Ready: corev1.ConditionFalse, Wanted: 3, Installed: 2}
	vague := rollup.Summary{Health: appsv1alpha1.HealthUnknown, Ready: corev1.ConditionUnknown}
	counts := func(name string, healthy, unknown, degraded, wanted, installed int) []string {
		before, after := "cluster_name="+name+",cluster_namespace=fleet", "source=capi"
		return []string{
			fmt.Sprintf("masthead_application_components{%s,%s,state=installed} %d", before, after, installed),
			fmt.Sprintf("masthead_application_components{%s,%s,state=wanted} %d", before, after, wanted),
			fmt.Sprintf("masthead_applications{%s,health=Degraded,%s} %d", before, after, degraded),
			fmt.Sprintf("masthead_applications{%s,health=Healthy,%s} %d", before, after, healthy),
			fmt.Sprintf("masthead_applications{%s,health=Missing,%s} 0", before, after),
			fmt.Sprintf("masthead_applications{%s,health=Progressing,%s} 0", before, after),
			fmt.Sprintf("masthead_applications{%s,health=Suspended,%s} 0", before, after),
			fmt.Sprintf("masthead_applications{%s,health=Unknown,%s} %d", before, after, unknown),
		}
	}
	shopIs := func(health string, wanted, installed int, ready ...string) []string {
		const at = "application_name=shop,application_namespace=web,cluster_name=w1,cluster_namespace=fleet"
		return append(ready,
			fmt.Sprintf("masthead_application_components_installed{%s,source=capi} %d", at, installed),
			fmt.Sprintf("masthead_application_components_wanted{%s,source=capi} %d", at, wanted),
			fmt.Sprintf("masthead_application_health{%s,health=%s,source=capi} 1", at, health),
		)
	}
	const ready = "masthead_application_ready{application_name=shop,application_namespace=web,cluster_name=w1,cluster_namespace=fleet,source=capi} "

	cases := map[string]struct {
		reason         string
		perApplication bool
		do             func(*Metrics)
		want           []string
	}{
		"Nothing": {
			reason: "There are no series without observations.",
			do:     func(*Metrics) {},
		},
		"Counts": {
			reason: "Applications are counted by health, their components are added up, and the states without Applications are 0.",
			do: func(m *Metrics) {
				m.application("capi/fleet/w1", shop, well)
				m.application("capi/fleet/w1", blog, broken)
			},
			want: counts("w1", 1, 0, 1, 6, 5),
		},
		"Change": {
			reason: "An Application is in one state, however often it is reported.",
			do: func(m *Metrics) {
				for _, s := range []rollup.Summary{well, well, broken, well, broken, broken} {
					m.application("capi/fleet/w1", shop, s)
				}
			},
			want: counts("w1", 0, 0, 1, 3, 2),
		},
		"Forgotten": {
			reason: "What is forgotten is not counted any more.",
			do: func(m *Metrics) {
				m.application("capi/fleet/w1", shop, well)
				m.application("capi/fleet/w1", blog, broken)
				m.forget("capi/fleet/w1", blog)
				m.forget("capi/fleet/w1", blog)
			},
			want: counts("w1", 1, 0, 0, 3, 3),
		},
		"LastForgotten": {
			reason:         "A cluster without Applications has no series of them.",
			perApplication: true,
			do: func(m *Metrics) {
				m.application("capi/fleet/w1", shop, well)
				m.forget("capi/fleet/w1", shop)
			},
		},
		"ClusterForgotten": {
			reason:         "The series of a cluster go with it, those of other clusters stay.",
			perApplication: true,
			do: func(m *Metrics) {
				m.application("capi/fleet/w1", shop, broken)
				m.application("capi/fleet/w2", shop, well)
				m.wrote("capi/fleet/w1", writeStatus)
				m.wrote("capi/fleet/w2", writeStatus)
				m.forgetCluster("capi/fleet/w2")
			},
			want: slices.Concat(counts("w1", 0, 0, 1, 3, 2), shopIs("Degraded", 3, 2, ready+"0"),
				[]string{"masthead_application_writes_total{cluster_name=w1,cluster_namespace=fleet,source=capi,write=status} 1"}),
		},
		"Writes": {
			reason: "Writes are counted by what was written, in a cluster without Applications, too.",
			do: func(m *Metrics) {
				m.wrote("capi/fleet/w1", writeOwner)
				m.wrote("capi/fleet/w1", writeOwner)
				m.wrote("capi/fleet/w1", writeHealthCheck)
				m.wrote("capi/fleet/w1", writeDefinition)
			},
			want: []string{
				"masthead_application_writes_total{cluster_name=w1,cluster_namespace=fleet,source=capi,write=definition} 1",
				"masthead_application_writes_total{cluster_name=w1,cluster_namespace=fleet,source=capi,write=health-check} 1",
				"masthead_application_writes_total{cluster_name=w1,cluster_namespace=fleet,source=capi,write=owner-reference} 2",
			},
		},
		"EachInOneState": {
			reason:         "Only the state that an Application is in has a series.",
			perApplication: true,
			do: func(m *Metrics) {
				m.application("capi/fleet/w1", shop, broken)
				m.application("capi/fleet/w1", shop, well)
			},
			want: append(counts("w1", 1, 0, 0, 3, 3), shopIs("Healthy", 3, 3, ready+"1")...),
		},
		"EachNotKnownToBeReady": {
			reason:         "Unknown is neither 0 nor 1, so what was said before is taken back.",
			perApplication: true,
			do: func(m *Metrics) {
				m.application("capi/fleet/w1", shop, well)
				m.application("capi/fleet/w1", shop, vague)
			},
			want: append(counts("w1", 0, 1, 0, 0, 0), shopIs("Unknown", 0, 0)...),
		},
		"HealthThatIsNone": {
			reason:         "The label health is bounded, even if the status of an Application has another value.",
			perApplication: true,
			do:             func(m *Metrics) { m.application("capi/fleet/w1", shop, rollup.Summary{Health: "Splendid"}) },
			want:           append(counts("w1", 0, 1, 0, 0, 0), shopIs("Unknown", 0, 0)...),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			tc.do(NewMetrics(registry, tc.perApplication))
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, series(t, registry)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNilMetrics(*testing.T) {
	var m *Metrics
	m.application("c", record.ApplicationKey{Name: "a"}, rollup.Summary{})
	m.forget("c", record.ApplicationKey{Name: "a"})
	m.wrote("c", writeStatus)
	m.forgetCluster("c")
}

// series returns every series of a registry with its value, sorted.
func series(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			out = append(out, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}

// TestSeriesOfOneClusterAreBounded reports more Applications than can have their own series, and forgets one.
func TestSeriesOfOneClusterAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg, true)
	well := rollup.Summary{Health: appsv1alpha1.HealthHealthy, Ready: corev1.ConditionTrue, Wanted: 1, Installed: 1}
	key := func(i int) record.ApplicationKey {
		return record.ApplicationKey{Namespace: "web", Name: fmt.Sprintf("app-%d", i)}
	}
	const more = 2
	tell := func() {
		for i := range seriesPerCluster + more {
			m.application("capi/fleet/w1", key(i), well)
		}
	}
	tell()
	tell()
	want := func(what string, healthy, without int) {
		t.Helper()
		got := map[string]int{}
		for _, line := range series(t, reg) {
			switch name, _, _ := strings.Cut(line, "{"); name {
			case "masthead_application_health", "masthead_application_components_wanted", "masthead_application_ready":
				got[name]++
			case "masthead_applications_without_series":
				var n int
				_, _ = fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &n)
				got[name] = n
			}
		}
		wanted := map[string]int{}
		for name, n := range map[string]int{
			"masthead_application_health": healthy, "masthead_application_components_wanted": healthy,
			"masthead_application_ready": healthy, "masthead_applications_without_series": without,
		} {
			if n > 0 {
				wanted[name] = n
			}
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	want("more Applications than have series", seriesPerCluster, more)
	m.forget("capi/fleet/w1", key(0))
	want("one with series is gone", seriesPerCluster-1, more)
	m.application("capi/fleet/w1", key(seriesPerCluster), well)
	want("one without takes its place when it is reported", seriesPerCluster, more-1)
	m.application("capi/fleet/w2", key(0), well)
	want("another cluster has series of its own", seriesPerCluster+1, more-1)
	m.forgetCluster("capi/fleet/w1")
	want("a cluster that goes takes its series with it", 1, 0)
}
