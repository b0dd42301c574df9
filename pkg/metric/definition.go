// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"github.com/prometheus/client_golang/prometheus"
)

// A Definition describes a metric. It is used to create the metric, its help text, and its row in the reference.
type Definition struct {
	// Name is the name of the metric, with its unit.
	Name string
	// Help says what it measures, in plain text sentences for readers of the reference.
	Help string
	// PerCluster adds the labels that name a cluster, before Labels.
	PerCluster bool
	// Labels are its own labels.
	Labels []Label
	// Buckets are those of a histogram.
	Buckets []float64
	// See is a page of the documentation with more details, relative to docs: "page.md#heading".
	See string

	// Type is the type of the metric. The constructors set it.
	Type Type
}

// A Label is a label of a metric that does not name a cluster.
type Label struct {
	// Name is its name.
	Name string
	// Values describes its values, for the reference.
	Values string
}

// A Type is a Prometheus metric type.
type Type string

// The types of metrics.
const (
	TypeGauge     Type = "gauge"
	TypeCounter   Type = "counter"
	TypeHistogram Type = "histogram"
)

// LabelNames returns the names of its labels, in the order in which values are given.
func (d Definition) LabelNames() []string {
	var names []string
	if d.PerCluster {
		names = clusterLabels()
	}
	for _, l := range d.Labels {
		names = append(names, l.Name)
	}
	return names
}

// NewGauge creates a gauge and registers it, unless the Registerer is nil. It panics if the name is already registered.
func NewGauge(reg prometheus.Registerer, d Definition) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	note(reg, d, TypeGauge)
	Register(reg, v)
	return v
}

// NewCounter creates a counter and registers it, as NewGauge does.
func NewCounter(reg prometheus.Registerer, d Definition) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	note(reg, d, TypeCounter)
	Register(reg, v)
	return v
}

// NewHistogram creates a histogram and registers it, as NewGauge does.
func NewHistogram(reg prometheus.Registerer, d Definition) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.Name, Help: d.Help, Buckets: d.Buckets,
	}, d.LabelNames())
	note(reg, d, TypeHistogram)
	Register(reg, v)
	return v
}

// NewGaugeDesc describes a gauge whose values a collector computes on collection. The collector registers itself.
func NewGaugeDesc(reg prometheus.Registerer, d Definition) *prometheus.Desc {
	note(reg, d, TypeGauge)
	return prometheus.NewDesc(d.Name, d.Help, d.LabelNames(), nil)
}

// gauges are computed on collection.
type gauges struct {
	desc *prometheus.Desc
	each func(emit func(value float64, labels ...string))
}

// Describe implements prometheus.Collector.
func (g gauges) Describe(out chan<- *prometheus.Desc) { out <- g.desc }

// Collect implements prometheus.Collector.
func (g gauges) Collect(out chan<- prometheus.Metric) {
	g.each(func(value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, value, labels...)
	})
}

// RegisterGauges registers a gauge whose values are computed on collection: each emits them. It panics if the name is
// already registered.
func RegisterGauges(reg prometheus.Registerer, d Definition, each func(emit func(value float64, labels ...string))) {
	Register(reg, gauges{desc: NewGaugeDesc(reg, d), each: each})
}

// Register registers a collector, unless the Registerer is nil.
func Register(reg prometheus.Registerer, c prometheus.Collector) {
	if reg != nil {
		reg.MustRegister(c)
	}
}

func note(reg prometheus.Registerer, d Definition, t Type) {
	if r, ok := reg.(*Recorder); ok {
		d.Type = t
		r.definitions = append(r.definitions, d)
	}
}

// A Recorder is a Registerer that records the definitions of metrics created with it. The reference is generated with
// one.
type Recorder struct {
	*prometheus.Registry
	definitions []Definition
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder { return &Recorder{Registry: prometheus.NewPedanticRegistry()} }

// Definitions returns the recorded definitions in order of creation.
func (r *Recorder) Definitions() []Definition { return r.definitions }
