// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// first is what a manager published, with some series changed.
func first(t *testing.T, changes ...string) Sample {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "first.txt"))
	if err != nil {
		t.Fatal(err)
	}
	sample, err := Parse(strings.NewReader(strings.NewReplacer(changes...).Replace(string(text))))
	if err != nil {
		t.Fatal(err)
	}
	return sample
}

func names(clusters []Cluster) string {
	out := make([]string, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

func find(t *testing.T, clusters []Cluster, name string) Cluster {
	t.Helper()
	for _, c := range clusters {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no cluster %s", name)
	return Cluster{}
}

func TestOneSample(t *testing.T) {
	const began = 1795305600
	answer := Calculate(first(t), time.Unix(began+100, 0))
	want := Manager{Version: "v0.1.0", Over: 100, ResidentBytes: 104857600, BudgetBytes: 83886080, BudgetUsedBytes: 3145728, Goroutines: 321, CPU: 0.1}
	if diff := cmp.Diff(want, answer.Manager); diff != "" {
		t.Errorf("the manager:\n%s", diff)
	}
	wantCluster := Cluster{
		Name: "capi/default/w1", Bytes: 1048576, Objects: 12, Claims: 4, Copies: 2, Applications: 1, Components: 5, Throttled: 1.5,
		Requests: map[string]float64{"get": 120, "patch": 30}, PerSecond: map[string]float64{"get": 1.2, "patch": 0.3},
	}
	if diff := cmp.Diff(wantCluster, find(t, answer.Clusters, "capi/default/w1")); diff != "" {
		t.Errorf("a cluster:\n%s", diff)
	}
	wantControllers := []Controller{
		{Name: "agent", Reconciles: 110, Errors: 10, PerSecond: 1.1, Mean: 0.1, Queued: 7, Busy: 2, Workers: 64},
		{Name: "inventory", Reconciles: 5, PerSecond: 0.05, Queued: 4},
	}
	if diff := cmp.Diff(wantControllers, answer.Controllers); diff != "" {
		t.Errorf("controllers:\n%s", diff)
	}
	if answer = Calculate(first(t), time.Time{}); answer.Manager.Over != 0 || find(t, answer.Clusters, "capi/default/w1").PerSecond != nil {
		t.Error("without a time there are no rates")
	}
}

func TestTwoSamples(t *testing.T) {
	const w1, shop = `code="2xx",source="capi",verb="patch"} `, `source="kubeconfig",verb="get"} `
	for name, tc := range map[string]struct {
		reason     string
		changes    []string
		w1, shop   float64
		reconciles float64
	}{
		"Nothing":   {reason: "What did not grow has no rate."},
		"Grown":     {reason: "A rate is the growth.", changes: []string{w1 + "30", w1 + "50", shop + "400", shop + "410"}, w1: 2, shop: 1},
		"Restarted": {reason: "A counter that was reset counts from zero.", changes: []string{shop + "400", shop + "40"}, shop: 4},
		"Work":      {reason: "Reconciliations have a rate, too.", changes: []string{`result="success"} 100`, `result="success"} 150`}, reconciles: 5},
	} {
		t.Run(name, func(t *testing.T) {
			answer := Between(first(t), first(t, tc.changes...), 10*time.Second)
			one, other := find(t, answer.Clusters, "capi/default/w1"), find(t, answer.Clusters, "kubeconfig/edge/shop")
			if one.Rate() != tc.w1 || other.Rate() != tc.shop || answer.Controllers[0].PerSecond != tc.reconciles {
				t.Errorf("%s Want %v, %v and %v, got %v, %v and %v", tc.reason, tc.w1, tc.shop, tc.reconciles, one.Rate(), other.Rate(), answer.Controllers[0].PerSecond)
			}
		})
	}
}

func TestSort(t *testing.T) {
	clusters := Calculate(first(t), time.Time{}).Clusters
	for by, want := range map[string]string{
		ByMemory:   "kubeconfig/edge/shop capi/default/w1 capi/default/idle",
		ByRequests: "kubeconfig/edge/shop capi/default/w1 capi/default/idle",
		ByObjects:  "capi/default/w1 capi/default/idle kubeconfig/edge/shop",
		ByQueue:    "kubeconfig/edge/shop capi/default/idle capi/default/w1",
		ByName:     "capi/default/idle capi/default/w1 kubeconfig/edge/shop",
	} {
		if Sort(clusters, by); names(clusters) != want {
			t.Errorf("by %s: want %s, got %s", by, want, names(clusters))
		}
	}
	if len(Orders()) != 5 {
		t.Error("an order is not tested")
	}
}

func TestParseRefuses(t *testing.T) {
	for reason, text := range map[string]string{
		"what is no metrics":            "<html>",
		"the metrics of something else": "go_goroutines 3\n",
	} {
		if _, err := Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%s is refused", reason)
		}
	}
}
