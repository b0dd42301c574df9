// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/masthead-dev/masthead/pkg/metric"
)

// Metrics are the metrics that the manager published at one moment.
type Metrics map[string]*dto.MetricFamily

// Metrics reads the manager's metrics.
func (m *Manager) Metrics(ctx context.Context) (Metrics, error) {
	return ReadMetrics(ctx, "http://"+m.metricsAddress+"/metrics")
}

// ReadMetrics reads the metrics that a program publishes at a URL.
func ReadMetrics(ctx context.Context, url string) (Metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // A starved program takes long.
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	metrics, err := ParseMetrics(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return metrics, nil
}

// ParseMetrics reads metrics in the text format.
func ParseMetrics(text io.Reader) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("cannot parse the metrics: %w", err)
	}
	return families, nil
}

// Value sums the samples of a counter or gauge whose labels include the given ones ("name", "value", ...).
func (m Metrics) Value(name string, labels ...string) float64 {
	sum := 0.0
	for _, series := range m[name].GetMetric() {
		if !hasLabels(series, labels) {
			continue
		}
		switch {
		case series.GetGauge() != nil:
			sum += series.GetGauge().GetValue()
		case series.GetCounter() != nil:
			sum += series.GetCounter().GetValue()
		case series.GetUntyped() != nil:
			sum += series.GetUntyped().GetValue()
		}
	}
	return sum
}

// Series lists the series whose labels, or whose cluster's name, contain a text, as name{labels}.
func (m Metrics) Series(mention string) []string {
	var series []string
	for name, family := range m {
		for _, one := range family.GetMetric() {
			var labels []string
			mentions := strings.Contains(clusterLabel(one), mention)
			for _, l := range one.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
				mentions = mentions || strings.Contains(l.GetValue(), mention)
			}
			if mentions {
				series = append(series, name+"{"+strings.Join(labels, ",")+"}")
			}
		}
	}
	return series
}

// clusterLabel is the name of the cluster that a series is about.
func clusterLabel(m *dto.Metric) string {
	labels := map[string]string{}
	for _, l := range m.GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	return labels[metric.LabelSource] + "/" + labels[metric.LabelClusterNamespace] + "/" + labels[metric.LabelClusterName]
}

func hasLabels(m *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, l := range m.GetLabel() {
			found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}
