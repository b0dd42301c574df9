// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metricreference

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	_ "k8s.io/client-go/tools/leaderelection"
	_ "sigs.k8s.io/controller-runtime/pkg/controller"
	_ "sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// TestPageIsCurrent checks that the page matches the code.
func TestPageIsCurrent(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("..", "..", Page))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != Markdown() {
		t.Errorf("%s is not what the code says: run make generate", Page)
	}
}

// TestDefinitions checks that our metrics follow the conventions, have a description, and name clusters in one way.
func TestDefinitions(t *testing.T) {
	types := map[metric.Type]dto.MetricType{
		metric.TypeGauge: dto.MetricType_GAUGE, metric.TypeCounter: dto.MetricType_COUNTER, metric.TypeHistogram: dto.MetricType_HISTOGRAM,
	}
	seen := map[string]bool{}
	for _, g := range Groups() {
		for _, d := range g.Metrics {
			if seen[d.Name] {
				t.Errorf("%s is there twice", d.Name)
			}
			seen[d.Name] = true
			if !strings.HasSuffix(d.Help, ".") {
				t.Errorf("%s: the help is no sentence: %q", d.Name, d.Help)
			}
			family := &dto.MetricFamily{Name: &d.Name, Help: &d.Help, Type: types[d.Type].Enum(), Metric: []*dto.Metric{{}}}
			for _, l := range d.LabelNames() {
				family.Metric[0].Label = append(family.Metric[0].Label, &dto.LabelPair{Name: &l, Value: new("x")})
				// The labels that Prometheus adds to every series of a Pod hide labels of the metric of the same name.
				if slices.Contains([]string{"cluster", "namespace", "pod", "container", "job", "instance", "service", "endpoint", "node"}, l) {
					t.Errorf("%s: the label %q is one of the target's", d.Name, l)
				}
			}
			for _, l := range d.Labels {
				if l.Values == "" {
					t.Errorf("%s: the values of the label %q are not explained", d.Name, l.Name)
				}
			}
			if g.Title == "Libraries" {
				continue
			}
			problems, err := promlint.NewWithMetricFamilies([]*dto.MetricFamily{family}).Lint()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	}
}

// TestLibraries checks that the libraries have the metrics and the labels that we document.
func TestLibraries(t *testing.T) {
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("the registry of controller-runtime cannot list what it describes")
	}
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		registry.Describe(described)
	}()
	text := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: {([\w,]*)}`)
	there := map[string][]string{}
	for d := range described {
		m := text.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		there[m[1]] = slices.DeleteFunc(strings.Split(m[2], ","), func(l string) bool { return l == "" })
	}
	for _, d := range libraries() {
		labels, known := there[d.Name]
		switch want := d.LabelNames(); {
		case !known:
			t.Errorf("no library has the metric %s", d.Name)
		case len(want)+len(labels) > 0 && !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(labels))):
			t.Errorf("%s has the labels %q, and we say %q", d.Name, labels, want)
		}
	}
}

func TestSharedLabels(t *testing.T) {
	groups := []Group{{Metrics: []metric.Definition{
		{Name: "first", Labels: []metric.Label{{Name: "crd", Values: "a definition"}, {Name: "reason", Values: "of one kind"}}},
		{Name: "second", Labels: []metric.Label{{Name: "crd", Values: "a definition"}, {Name: "reason", Values: "of another"}}},
		{Name: "third", Labels: []metric.Label{{Name: "reason", Values: "of another"}, {Name: "single", Values: "of one metric"}}},
	}}}
	shared := sharedLabels(groups)
	if want := map[string]string{"crd": "a definition"}; !maps.Equal(shared, want) {
		t.Errorf("want only labels that mean the same in several metrics, %v, got %v", want, shared)
	}
	if got, want := labels(groups[0].Metrics[0], shared), "`crd`<br>`reason`: of one kind"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}
