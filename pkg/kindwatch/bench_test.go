// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/json"
)

// deployment is the text of an object as large as many are.
func deployment(n int, app string) []byte {
	annotations := `{"deployment.kubernetes.io/revision":"1"}`
	if app != "" {
		annotations = fmt.Sprintf(`{"deployment.kubernetes.io/revision":"1","example.org/app":%q}`, app)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"wordpress-%05d","namespace":"team-%d",`+
		`"uid":"6a1bd2ce-9b5c-4e0c-8d61-2d3a4f%06d","resourceVersion":"%d","generation":2,"creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"labels":{"app.kubernetes.io/name":"wordpress","app.kubernetes.io/instance":"w%d"},"annotations":%s,`+
		`"managedFields":[{"apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{},"f:template":{"f:spec":{"f:containers":{}}}}},"manager":"kubectl","operation":"Update"}]},`+
		`"data":{"value":"Healthy"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"wordpress"}},"template":{"metadata":{"labels":{"app":"wordpress"}},`+
		`"spec":{"containers":[{"name":"wordpress","image":"wordpress:6.7","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}]}}},`+
		`"status":{"observedGeneration":2,"replicas":3,"readyReplicas":3,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		n, n%50, n, 1000+n, n, annotations)
}

func decoded(tb testing.TB, text []byte) *unstructured.Unstructured {
	tb.Helper()
	var content map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(text, &content); err != nil {
		tb.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// streamed lists objects as a watch with initial events does, and returns the store that has what is kept of them: app
// says of what, by being not empty.
func streamed(tb testing.TB, n int, app func(i int) string) *store {
	tb.Helper()
	s := newStore(configMaps, func(Event) {}, func() {})
	s.reduce = reduceToNote
	all := map[types.NamespacedName]*Item{}
	for i := range n {
		got, err := s.arrivedEvent(decoded(tb, deployment(i, app(i))))
		if err != nil {
			tb.Fatal(err)
		}
		if got.kept() {
			all[got.Key] = got
		}
	}
	if err := s.replace(slices.Collect(maps.Values(all)), "100000"); err != nil {
		tb.Fatal(err)
	}
	return s
}

// measureHeap is how much larger the heap is because of what make returns.
func measureHeap(fill func() *store) (*store, int64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := fill()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return s, int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

func ofApp(i int) string { return "app-" + strconv.Itoa(i/3) }

func ballast(int) string { return "" }

// TestMemoryGrowsWithRecordsAndNotWithBallast measures the heap, with fewer objects than the benchmarks do.
func TestMemoryGrowsWithRecordsAndNotWithBallast(t *testing.T) {
	const n = 5_000
	s, heap := measureHeap(func() *store { return streamed(t, n, ofApp) })
	perRecord := heap / n
	t.Logf("%d bytes per record, counted as %d", perRecord, s.budget.bytes/n)
	if perRecord > 1024 {
		t.Errorf("want a record to take less than 1 KiB with its indexes, got %d bytes", perRecord)
	}
	if counted := s.budget.bytes / n; counted < perRecord*3/4 || counted > perRecord*2 {
		t.Errorf("want the budget to count about what a record takes, %d bytes, got %d", perRecord, counted)
	}
	runtime.KeepAlive(s)

	s, heap = measureHeap(func() *store { return streamed(t, n, ballast) })
	t.Logf("%d bytes after %d objects that are not kept", heap, n)
	if heap > 256<<10 {
		t.Errorf("want nothing to be left of objects that are not kept, got %d bytes", heap)
	}
	runtime.KeepAlive(s)
}

// TestMemoryOfObjects measures the heap with objects that are kept whole.
func TestMemoryOfObjects(t *testing.T) {
	const n = 5_000
	text := int64(len(deployment(n, "")))
	s, heap := measureHeap(func() *store {
		s := newStore(configMaps, func(Event) {}, func() {})
		all := make([]*Item, n)
		for i := range all {
			all[i], _ = s.convert(decoded(t, deployment(i, "")))
		}
		if err := s.replace(all, "100000"); err != nil {
			t.Fatal(err)
		}
		return s
	})
	perObject, counted := heap/n, s.budget.bytes/n
	t.Logf("%d bytes per object of %d bytes, counted as %d", perObject, text, counted)
	if perObject > text*3/2 {
		t.Errorf("want an object to take about as much as its text, %d bytes, got %d", text, perObject)
	}
	if counted < perObject*3/4 || counted > perObject*2 {
		t.Errorf("want the budget to count about what an object takes, %d bytes, got %d", perObject, counted)
	}
	runtime.KeepAlive(s)
}

// BenchmarkObjects keeps and reads an object of 1.1 KB.
func BenchmarkObjects(b *testing.B) {
	s := newStore(configMaps, func(Event) {}, func() {})
	u := decoded(b, deployment(1, ""))
	i, _ := s.convert(u)
	for name, do := range map[string]func(){
		"Keep":     func() { _, _ = s.convert(u) },
		"Object":   func() { _ = i.Object() },
		"Metadata": func() { _ = i.Metadata() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do()
			}
		})
	}
}

func BenchmarkRecordMemory(b *testing.B) {
	const n = 15_000
	for b.Loop() {
		s, heap := measureHeap(func() *store { return streamed(b, n, ofApp) })
		b.ReportMetric(float64(heap)/n, "B/record")
		runtime.KeepAlive(s)
	}
}

func BenchmarkBallastMemory(b *testing.B) {
	for b.Loop() {
		s, heap := measureHeap(func() *store { return streamed(b, 20_000, ballast) })
		b.ReportMetric(float64(heap)/1024, "KiB/20k-objects")
		runtime.KeepAlive(s)
	}
}

// BenchmarkArriving is one object of a list, from its text to what is held of it.
func BenchmarkArriving(b *testing.B) {
	for name, app := range map[string]string{"Kept": "shop", "Ballast": ""} {
		text := deployment(1, app)
		b.Run("Decode/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				decoded(b, text)
			}
		})
		b.Run("DecodeAndReduce/"+name, func(b *testing.B) {
			s := newStore(configMaps, func(Event) {}, func() {})
			s.reduce = reduceToNote
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.arrivedEvent(decoded(b, text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkArrivingMetadata is the same for a kind of which only the metadata is watched, after it was decoded.
func BenchmarkArrivingMetadata(b *testing.B) {
	for name, app := range map[string]string{"Kept": "shop", "Ballast": ""} {
		b.Run(name, func(b *testing.B) {
			var m metav1.PartialObjectMetadata
			if err := json.UnmarshalCaseSensitivePreserveInts(deployment(1, app), &m); err != nil {
				b.Fatal(err)
			}
			s := newStore(configMaps, func(Event) {}, func() {})
			s.reduce = reduceToNote
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.arrivedEvent(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSet changes what one of many owners asks for.
func BenchmarkSet(b *testing.B) {
	for _, owners := range []int{10, 5000} {
		b.Run(strconv.Itoa(owners), func(b *testing.B) {
			w := idle(b)
			for i := range owners {
				w.Set(strconv.Itoa(i), numbered(1), numbered(2), numbered(3))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				w.Set(strconv.Itoa(i%owners), numbered(1), numbered(2), numbered(3+i%2))
			}
		})
	}
}

// BenchmarkLookup finds the three objects of one app among many.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{30, 15_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w := idle(b)
			w.Set("bench", configMaps)
			w.kinds[configMaps].store = streamed(b, n, ofApp)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				if got, err := w.Lookup(configMaps, "app/"+ofApp(i%n)); err != nil || len(got) != 3 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

// BenchmarkEqualUpdate is a change that the record does not show.
func BenchmarkEqualUpdate(b *testing.B) {
	s := streamed(b, 15_000, ofApp)
	u := decoded(b, deployment(7, ofApp(7)))
	b.ReportAllocs()
	i := 100_000
	for b.Loop() {
		i++
		u.SetResourceVersion(strconv.Itoa(i))
		s.update(u)
		s.advanceTo(strconv.Itoa(i))
	}
}
