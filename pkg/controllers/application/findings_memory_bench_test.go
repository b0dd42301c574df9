// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// BenchmarkMemoryPerComponent measures what is kept of a component with its share of the Application: of 2000
// Applications with three components each that are installed, healthy and owned, or else discovered. The indexes of
// pkg/kindwatch are not included.
func BenchmarkMemoryPerComponent(b *testing.B) {
	const applications, each = 2000, 3
	for _, discovered := range []bool{false, true} {
		b.Run(fmt.Sprintf("discovered=%t", discovered), func(b *testing.B) {
			for b.Loop() {
				r := reducerOfACluster()
				before := heapInUse()
				kept := make([]kindwatch.Record, 0, applications*(each+1))
				for i := range applications {
					kept = append(kept, keptRecords(b, r, i, each, discovered)...)
				}
				b.ReportMetric(float64(heapInUse()-before)/(applications*each), "B/component")
				runtime.KeepAlive(kept)
			}
		})
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// keptRecords returns the records of an Application and its components.
func keptRecords(tb testing.TB, r clusterReducer, i, components int, discovered bool) []kindwatch.Record {
	tb.Helper()
	name := fmt.Sprintf("shop-%d", i)
	app := &appsv1alpha1.Application{
		TypeMeta: metav1.TypeMeta{APIVersion: appsv1alpha1.GroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)), Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)),
		},
		Spec: appsv1alpha1.ApplicationSpec{Type: "shop", Version: "1.0", Components: map[string]appsv1alpha1.ComponentKind{}},
	}
	if discovered {
		discovering(r, app)
	}
	var kept []kindwatch.Record
	o := appstatus.Observation{Application: app}
	for c := range components {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		u.SetNamespace("default")
		u.SetName(fmt.Sprintf("%s-settings-%d", name, c))
		u.SetLabels(map[string]string{"app.kubernetes.io/name": "shop", "app.kubernetes.io/part-of": name})
		if !discovered {
			u.SetAnnotations(map[string]string{appsv1alpha1.ApplicationAnnotation: name})
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: app.APIVersion, Kind: app.Kind, Name: name, UID: app.UID}})
			app.Spec.Components[u.GetName()] = applicationtest.ConfigMaps
		}
		rec, ok := r.reducer.Reduce(applicationtest.ConfigMapKind, u)
		if !ok {
			tb.Fatal("nothing is kept of a component")
		}
		kept = append(kept, rec)
		o.Components = append(o.Components, viewOfKept(u.GetName(), record.GetComponent(rec), discovered))
	}
	app.Status = appstatus.Build(o, metav1.NewTime(time.Date(2026, 1, 2, 3, 5, 5, 6, time.UTC)))
	app.Status.Ready = corev1.ConditionUnknown
	fields, err := toFields(app)
	if err != nil {
		tb.Fatal(err)
	}
	rec, ok := r.reducer.Reduce(record.ApplicationKind, fields)
	if !ok {
		tb.Fatal("nothing is kept of an Application")
	}
	return append(kept, rec)
}
