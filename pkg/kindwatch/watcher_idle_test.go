// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// BenchmarkIdleWatch is what a watch costs on which nothing happens: goroutines, their stacks, and the heap.
func BenchmarkIdleWatch(b *testing.B) {
	for name, metadataOnly := range map[string]bool{"Objects": false, "Metadata": true} {
		b.Run(name, func(b *testing.B) {
			const n = 200
			for b.Loop() {
				dyn, meta := clients(b, config)
				w, err := New(Options{Client: dyn, MetadataClient: meta, Handler: func(Event) {}, Reduce: reduceToNote, Lists: limits.NewSemaphore[any](4, 0)})
				if err != nil {
					b.Fatal(err)
				}
				go func() { _ = w.Start(b.Context()) }()
				w.Set("first", configMaps)
				if err := w.WaitForSync(b.Context()); err != nil {
					b.Fatal(err)
				}
				read := func() (m runtime.MemStats, goroutines int) {
					runtime.GC()
					runtime.GC()
					runtime.ReadMemStats(&m)
					return m, runtime.NumGoroutine()
				}
				before, goroutines := read()
				for i := range n {
					kind := configMaps
					kind.MetadataOnly, kind.FieldSelector = metadataOnly, fmt.Sprintf("metadata.namespace=none-%d", i)
					w.Set(fmt.Sprint(i), kind)
				}
				if err := w.WaitForSync(b.Context()); err != nil {
					b.Fatal(err)
				}
				after, now := read()
				b.ReportMetric(float64(now-goroutines)/n, "goroutines/watch")
				b.ReportMetric(float64(after.StackInuse-before.StackInuse)/n, "stack-B/watch")
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "heap-B/watch")
			}
		})
	}
}
