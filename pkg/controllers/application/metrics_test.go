// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/install"
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
		do             func(*reconciler)
		want           []string
	}{
		"Nothing": {
			reason: "There are no series without observations.",
			do:     func(*reconciler) {},
		},
		"Counts": {
			reason: "Applications are counted by health, their components are added up, and the states without Applications are 0.",
			do: func(r *reconciler) {
				r.rollup.Observe("capi/fleet/w1", shop, well)
				r.rollup.Observe("capi/fleet/w1", blog, broken)
			},
			want: counts("w1", 1, 0, 1, 6, 5),
		},
		"Change": {
			reason: "An Application is in one state, however often it is reported.",
			do: func(r *reconciler) {
				for _, s := range []rollup.Summary{well, well, broken, well, broken, broken} {
					r.rollup.Observe("capi/fleet/w1", shop, s)
				}
			},
			want: counts("w1", 0, 0, 1, 3, 2),
		},
		"Forgotten": {
			reason: "What is forgotten is not counted any more.",
			do: func(r *reconciler) {
				r.rollup.Observe("capi/fleet/w1", shop, well)
				r.rollup.Observe("capi/fleet/w1", blog, broken)
				r.rollup.Forget("capi/fleet/w1", blog)
				r.rollup.Forget("capi/fleet/w1", blog)
			},
			want: counts("w1", 1, 0, 0, 3, 3),
		},
		"LastForgotten": {
			reason:         "A cluster without Applications has no series of them.",
			perApplication: true,
			do: func(r *reconciler) {
				r.rollup.Observe("capi/fleet/w1", shop, well)
				r.rollup.Forget("capi/fleet/w1", shop)
			},
		},
		"ClusterForgotten": {
			reason:         "The series of a cluster go with it, those of other clusters stay.",
			perApplication: true,
			do: func(r *reconciler) {
				r.rollup.Observe("capi/fleet/w1", shop, broken)
				r.rollup.Observe("capi/fleet/w2", shop, well)
				r.metrics.wrote("capi/fleet/w1", writeStatus)
				r.metrics.wrote("capi/fleet/w2", writeStatus)
				r.disengaged("capi/fleet/w2")
				r.rollup.Observe("capi/fleet/w2", shop, well) // A pass that ended late.
			},
			want: slices.Concat(counts("w1", 0, 0, 1, 3, 2), shopIs("Degraded", 3, 2, ready+"0"),
				[]string{"masthead_application_writes_total{cluster_name=w1,cluster_namespace=fleet,source=capi,write=status} 1"}),
		},
		"Unwatched": {
			reason:         "A cluster whose Applications are not watched has no series of them.",
			perApplication: true,
			do: func(r *reconciler) {
				w := &workload.Cluster{Name: "capi/fleet/w1"}
				r.workloads.Add(t.Context(), w.Name, w)
				r.rollup.Observe(w.Name, shop, well)
				r.metrics.wrote(w.Name, writeStatus)
				r.unwatched(w, fleetv1alpha1.ReasonDisabled, "No.")
				r.rollup.Observe(w.Name, shop, well) // A pass that ended late.
				r.unwatched(w, fleetv1alpha1.ReasonDisabled, "No.")
			},
		},
		"Writes": {
			reason: "Writes are counted by what was written, in a cluster without Applications, too.",
			do: func(r *reconciler) {
				r.metrics.wrote("capi/fleet/w1", writeOwner)
				r.metrics.wrote("capi/fleet/w1", writeOwner)
				r.metrics.wrote("capi/fleet/w1", writeHealthCheck)
				r.metrics.wrote("capi/fleet/w1", writeDefinition)
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
			do: func(r *reconciler) {
				r.rollup.Observe("capi/fleet/w1", shop, broken)
				r.rollup.Observe("capi/fleet/w1", shop, well)
			},
			want: append(counts("w1", 1, 0, 0, 3, 3), shopIs("Healthy", 3, 3, ready+"1")...),
		},
		"EachNotKnownToBeReady": {
			reason:         "Unknown is neither 0 nor 1, so what was said before is taken back.",
			perApplication: true,
			do: func(r *reconciler) {
				r.rollup.Observe("capi/fleet/w1", shop, well)
				r.rollup.Observe("capi/fleet/w1", shop, vague)
			},
			want: append(counts("w1", 0, 1, 0, 0, 0), shopIs("Unknown", 0, 0)...),
		},
		"HealthThatIsNone": {
			reason:         "The label health is bounded, even if the status of an Application has another value.",
			perApplication: true,
			do:             func(r *reconciler) { r.rollup.Observe("capi/fleet/w1", shop, rollup.Summary{Health: "Splendid"}) },
			want:           append(counts("w1", 0, 1, 0, 0, 0), shopIs("Unknown", 0, 0)...),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, registry := collecting(tc.perApplication)
			tc.do(r)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, series(t, registry)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// collecting returns a reconciler of two engaged clusters, and its metrics.
func collecting(perApplication bool) (*reconciler, *prometheus.Registry) {
	registry := prometheus.NewPedanticRegistry()
	r := &reconciler{rollup: rollup.NewCollector(clock.RealClock{}), reports: install.NewReports(nil, nil)}
	r.metrics, r.workloads = NewMetrics(registry, r.rollup, perApplication), newWorkloads(r)
	r.rollup.Engaged("capi/fleet/w1")
	r.rollup.Engaged("capi/fleet/w2")
	return r, registry
}

func TestMetricsWithoutARegisterer(*testing.T) {
	m := NewMetrics(nil, rollup.NewCollector(clock.RealClock{}), true)
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

// TestSeriesOfOneClusterAreBounded observes more Applications than can have their own series, and forgets one.
func TestSeriesOfOneClusterAreBounded(t *testing.T) {
	r, reg := collecting(true)
	key := observeMany(r, seriesPerCluster+2)
	want := func(what string, from, to, w2, without int) {
		t.Helper()
		var want []string
		for i := from; i < to; i++ {
			want = append(want, fmt.Sprintf("w1 %s", key(i).Name))
		}
		for i := range w2 {
			want = append(want, fmt.Sprintf("w2 %s", key(i).Name))
		}
		got, others := map[string][]string{}, 0
		for _, line := range series(t, reg) {
			name, labels, _ := strings.Cut(line, "{")
			switch name {
			case "masthead_application_health", "masthead_application_components_wanted", "masthead_application_components_installed",
				"masthead_application_ready":
				application, rest, _ := strings.Cut(strings.TrimPrefix(labels, "application_name="), ",application_namespace=web,cluster_name=")
				cluster, _, _ := strings.Cut(rest, ",")
				got[name] = append(got[name], cluster+" "+application)
			case "masthead_applications_without_series":
				_, _ = fmt.Sscan(line[strings.LastIndex(line, " ")+1:], &others)
			}
		}
		if others != without {
			t.Errorf("%s: want %d without series, got %d", what, without, others)
		}
		for _, name := range slices.Sorted(maps.Keys(got)) {
			slices.Sort(got[name])
			if diff := cmp.Diff(want, got[name]); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", what, name, diff)
			}
		}
		if len(got) != 4 {
			t.Errorf("%s: want 4 metrics, got %d", what, len(got))
		}
	}
	want("more Applications than have series: the first by name have them", 0, seriesPerCluster, 0, 2)
	r.rollup.Forget("capi/fleet/w1", key(0))
	want("one with series is gone: the next takes its place", 1, seriesPerCluster+1, 0, 1)
	r.rollup.Observe("capi/fleet/w2", key(0), rollup.Summary{Health: appsv1alpha1.HealthHealthy, Ready: corev1.ConditionTrue})
	want("another cluster has series of its own", 1, seriesPerCluster+1, 1, 1)
	r.disengaged("capi/fleet/w1")
	want("a cluster that goes takes its series with it", 0, 0, 1, 0)
}

// observeMany observes so many healthy Applications of a cluster, and returns their keys in the order of their names.
func observeMany(r *reconciler, n int) (key func(int) record.ApplicationKey) {
	key = func(i int) record.ApplicationKey {
		return record.ApplicationKey{Namespace: "web", Name: fmt.Sprintf("app-%04d", i)}
	}
	for i := range n {
		r.rollup.Observe("capi/fleet/w1", key(i), rollup.Summary{
			Health: appsv1alpha1.HealthHealthy, Ready: corev1.ConditionTrue, Wanted: 1, Installed: 1,
		})
	}
	return key
}

// BenchmarkScrape measures a scrape of a cluster with many Applications.
func BenchmarkScrape(b *testing.B) {
	for _, perApplication := range []bool{false, true} {
		b.Run(fmt.Sprintf("PerApplication=%t", perApplication), func(b *testing.B) {
			r, registry := collecting(perApplication)
			observeMany(r, 5000)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
