// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/importertest"
)

// BenchmarkImports imports a number of EKS clusters at once, each with two node pools. It reports how long that takes,
// how many requests to the hub a pass over an idle import makes, and how much memory the importer takes for an import.
// Run it with -benchtime 1x. docs/importer.md has the figures.
func BenchmarkImports(b *testing.B) {
	for _, n := range []int{1, 10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				importMany(b, n)
			}
		})
	}
}

func importMany(b *testing.B, n int) {
	b.Helper()
	w, stop, err := startWorld(b.Context(), importertest.ModernKinds())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := stop(); err != nil {
			b.Error(err)
		}
	}()
	api := w.CreateAPI(b, "many", importertest.Reader)
	all := make([]*fleetv1alpha1.ClusterImport, n)
	var took []time.Duration
	sent := rights.count()
	for i := range all {
		cluster := fmt.Sprintf("cafe%04x", i)
		w.Cloud.AddEKS(fakecloud.EKS{
			Region: importertest.Region, Name: cluster, API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}, {Name: "green"}},
			Subnets: []fakecloud.Subnet{{ID: fmt.Sprintf("subnet-%08x", i), Zone: importertest.Region + "a", CIDR: "10.20.0.0/20", Public: true}},
		})
		all[i] = importertest.NewEKSImport("shop-"+cluster, cluster, "blue", "green")
	}
	began := time.Now()
	for _, imp := range all {
		w.Create(b, imp)
	}
	for _, imp := range all {
		w.WaitForReason(b, imp, fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
		w.WaitForReason(b, imp, fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessReadOnly)
		w.WaitForReason(b, imp, fleetv1alpha1.ConditionNodePoolsComplete, fleetv1alpha1.ReasonAllPoolsShown)
		took = append(took, time.Since(began))
	}
	b.ReportMetric(took[0].Seconds(), "s/first")
	b.ReportMetric(took[n-1].Seconds(), "s/all")
	b.ReportMetric(float64(rights.count()-sent)/float64(n), "requests/import")

	sent, passes := w.atRest(b), passes(b)
	for _, imp := range all {
		before := imp.DeepCopy()
		imp.Annotations = map[string]string{"looked": "at"}
		if err := w.Client.Patch(b.Context(), imp, client.MergeFrom(before)); err != nil {
			b.Fatal(err)
		}
	}
	now := w.atRest(b)
	b.ReportMetric(float64(now-sent)/(passesSince(b, passes)), "requests/look")

	if err := w.StopCloud(); err != nil {
		b.Error(err)
	}
	w.Cloud = nil
	with := heap()
	if err := w.stopImporter(); err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(with-heap())/float64(n)/1024, "KiB/import")
}

// atRest waits until the importer has made no request for some seconds, and returns how many it has made so far.
func (w *world) atRest(b *testing.B) int {
	b.Helper()
	const quiet = 3 * time.Second
	last, since := rights.count(), time.Now()
	importertest.Eventually(b, "the importer is at rest", func() (bool, string) {
		if now := rights.count(); now != last {
			last, since = now, time.Now()
		}
		return time.Since(since) > quiet, ""
	})
	return last
}

// passes is how often importers have reconciled an import.
func passes(b *testing.B) float64 {
	b.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	total := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			of := slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "controller" && l.GetValue() == "clusterimport" })
			if of && f.GetName() == "controller_runtime_reconcile_total" {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}

func passesSince(b *testing.B, before float64) float64 {
	b.Helper()
	return max(1, passes(b)-before)
}

// heap is how many bytes of the heap are in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // The first one runs finalizers.
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
