// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"io"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/masthead-dev/masthead/test/harness"
)

func TestInUse(t *testing.T) {
	gauge := func(v float64) *dto.MetricFamily {
		return &dto.MetricFamily{Metric: []*dto.Metric{{Gauge: &dto.Gauge{Value: &v}}}}
	}
	reads := []struct{ gc, heap float64 }{{5, 10}, {5, 900}, {6, 120}, {6, 300}, {7, 110}, {7, 1}}
	next := 0
	got, err := ReadInUse(t.Context(), func(context.Context) (harness.Metrics, error) {
		r := reads[next]
		next++
		return harness.Metrics{metricLastGC: gauge(r.gc), metricHeap: gauge(r.heap), metricStack: gauge(7)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got != (InUse{Heap: 110, Stacks: 7}) || next != 5 {
		t.Errorf("What counts is the smallest heap after a garbage collection, and two are waited for: got %+v after %d reads, want 110 after 5", got, next)
	}
	if _, err := ReadInUse(t.Context(), func(context.Context) (harness.Metrics, error) { return nil, io.EOF }); !errors.Is(err, io.EOF) {
		t.Errorf("The memory of a program whose metrics cannot be read is unknown: got %v", err)
	}
}
