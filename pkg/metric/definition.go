// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"github.com/prometheus/client_golang/prometheus"
)

// A Definition says what a metric is. It is what the metric is made of, what a scrape shows as its help, and its row in
// the reference.
type Definition struct {
	// Name is the name of the metric, with its unit.
	Name string
	// Help says what it counts, in sentences of plain text that a reader of the reference understands.
	Help string
	// PerCluster adds the labels that name a cluster, before Labels.
	PerCluster bool
	// Labels are the labels that are its own.
	Labels []Label
	// Buckets are those of a histogram.
	Buckets []float64
	// See is a page of the documentation that explains more, as seen from docs: "page.md#heading".
	See string

	// Type is what the metric is. Whatever makes it sets it.
	Type Type
}

// A Label is a label of a metric that does not name a cluster.
type Label struct {
	// Name is its name.
	Name string
	// Values says which values it has, for the reference.
	Values string
}

// A Type is what a metric is in Prometheus.
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

// NewGauge makes a gauge and registers it, unless the Registerer is nil. It panics if there is one of the name.
func NewGauge(reg prometheus.Registerer, d Definition) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	note(reg, d, TypeGauge)
	register(reg, v)
	return v
}

// NewCounter makes a counter and registers it, as NewGauge does.
func NewCounter(reg prometheus.Registerer, d Definition) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.LabelNames())
	note(reg, d, TypeCounter)
	register(reg, v)
	return v
}

// NewHistogram makes a histogram and registers it, as NewGauge does.
func NewHistogram(reg prometheus.Registerer, d Definition) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: d.Name, Help: d.Help, Buckets: d.Buckets,
	}, d.LabelNames())
	note(reg, d, TypeHistogram)
	register(reg, v)
	return v
}

// NewGaugeDesc describes a gauge whose values a collector finds out when it is asked. The collector registers itself.
func NewGaugeDesc(reg prometheus.Registerer, d Definition) *prometheus.Desc {
	note(reg, d, TypeGauge)
	return prometheus.NewDesc(d.Name, d.Help, d.LabelNames(), nil)
}

func register(reg prometheus.Registerer, c prometheus.Collector) {
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

// A Recorder is a Registerer that notes the definitions of the metrics that are made for it. The reference is made with
// one.
type Recorder struct {
	*prometheus.Registry
	definitions []Definition
}

// NewRecorder returns a Recorder that has noted nothing.
func NewRecorder() *Recorder { return &Recorder{Registry: prometheus.NewPedanticRegistry()} }

// Definitions returns what was noted, in the order in which it was made.
func (r *Recorder) Definitions() []Definition { return r.definitions }
