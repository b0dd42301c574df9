// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"errors"
	"fmt"
	"io"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// maxText is the maximum size that is read of an answer.
const maxText = 256 << 20

// A Sample holds a manager's metrics at one moment.
type Sample struct {
	families map[string]*dto.MetricFamily
}

// Parse reads the text format of Prometheus.
func Parse(r io.Reader) (Sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(r, maxText))
	if err != nil {
		return Sample{}, fmt.Errorf("cannot read metrics: %w", err)
	}
	if _, ok := families["masthead_build_info"]; !ok {
		return Sample{}, errors.New("these are not the metrics of a manager of Masthead: masthead_build_info is missing")
	}
	return Sample{families: families}, nil
}

// each visits the series of a metric.
func (s Sample) each(name string, use func(labels map[string]string, m *dto.Metric)) {
	for _, m := range s.families[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range m.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		use(labels, m)
	}
}

// sum adds up the series of a metric by a key made of their labels.
func (s Sample) sum(name string, key func(labels map[string]string) string) map[string]float64 {
	out := map[string]float64{}
	s.each(name, func(labels map[string]string, m *dto.Metric) { out[key(labels)] += value(m) })
	return out
}

// one returns the only series of a metric; zero if there is none.
func (s Sample) one(name string) float64 {
	return s.sum(name, func(map[string]string) string { return "" })[""]
}

func value(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.GetCounter().GetValue()
	case m.Gauge != nil:
		return m.GetGauge().GetValue()
	default:
		return m.GetUntyped().GetValue()
	}
}

// clusterLabel returns the name of the cluster that a series is about.
func clusterLabel(labels map[string]string) string {
	if labels["source"] == "" || labels["cluster_namespace"] == "" {
		return labels["cluster_name"]
	}
	return strings.Join([]string{labels["source"], labels["cluster_namespace"], labels["cluster_name"]}, "/")
}

func controllerLabel(labels map[string]string) string { return labels["controller"] }
