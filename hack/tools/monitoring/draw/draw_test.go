// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

func TestFilled(t *testing.T) {
	expr := `rate(a_total{source=~"$source", cluster_namespace=~"$cluster_namespace", cluster_name=~"$cluster_name"}[$__rate_interval])`
	want := `rate(a_total{source=~".*", cluster_namespace=~".*", cluster_name=~".*"}[8s])`
	if got := filled(expr, 2*time.Second); got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

func TestParts(t *testing.T) {
	second := func(s int64, v float64) model.SamplePair {
		return model.SamplePair{Timestamp: model.Time(s * 1000), Value: model.SampleValue(v)}
	}
	l := line{step: 2 * time.Second, samples: []model.SamplePair{second(0, 1), second(2, 1), second(4, math.NaN()), second(6, 2), second(20, 3)}}
	if got := l.parts(); len(got) != 3 || len(got[0]) != 2 {
		t.Errorf("a line ends where there is no number and where there is no sample, got %v", got)
	}
}

// TestDraw draws the panels that the documentation shows, from other data.
func TestDraw(t *testing.T) {
	for page, title := range map[string]string{"fleet-overview": "Clusters by state", "cluster-detail": "Requests by verb"} {
		p, err := readPanel(filepath.Join("..", "..", "..", "..", "config", "grafana", page+".json"), title)
		if err != nil {
			t.Fatal(err)
		}
		name := legend(p.Targets[0].LegendFormat, model.Metric{"state": "Connected"})
		path := filepath.Join(t.TempDir(), fileName(title)+".png")
		if err := draw(path, title, p.unit(), v1.Range{End: time.Unix(1, 0)}, []line{{name: name, step: time.Second, samples: []model.SamplePair{{Value: 1}, {Timestamp: 1000, Value: 2}}}}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("want a picture of %s: %v", title, err)
		}
	}
}
