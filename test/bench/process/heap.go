// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"time"

	"github.com/masthead-dev/masthead/test/harness"
)

// Names of metrics that every program written in Go publishes.
const (
	metricHeap   = "go_memstats_heap_alloc_bytes"
	metricStack  = "go_memstats_stack_inuse_bytes"
	metricLastGC = "go_memstats_last_gc_time_seconds"
)

// InUse is the memory that a program written in Go has in use: the objects on its heap, and the stacks of its
// goroutines. The rest of its memory is what it may use next, and garbage.
type InUse struct{ Heap, Stacks int64 }

// ReadInUse reads the metrics of a program, which produces garbage, until there have been two garbage collections, and
// returns the smallest heap that it has seen: the metric counts garbage as well, except right after a collection.
func ReadInUse(ctx context.Context, read func(context.Context) (harness.Metrics, error)) (InUse, error) {
	// The runtime collects at least every two minutes.
	const patience = 5 * time.Minute
	var smallest, stacks, last float64
	begun, collections := time.Now(), -1
	for collections < 2 {
		m, err := read(ctx)
		if err != nil {
			return InUse{}, err
		}
		if gc := m.Value(metricLastGC); gc != last {
			last = gc
			collections++
		}
		if heap := m.Value(metricHeap); collections > 0 && (smallest == 0 || heap < smallest) {
			smallest = heap
		}
		stacks = m.Value(metricStack)
		if time.Since(begun) > patience {
			return InUse{}, fmt.Errorf("no two garbage collections in %s", patience)
		}
	}
	return InUse{Heap: int64(smallest), Stacks: int64(stacks)}, nil
}
