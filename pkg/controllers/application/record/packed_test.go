// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A kept Application equals the one that arrived, except for irrelevant metadata.
func TestPackingChangesNothing(t *testing.T) {
	now := metav1.Now().Rfc3339Copy()
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "u"},
		Spec: appsv1alpha1.ApplicationSpec{
			Type: "shop", Version: "1", Dependencies: []string{"db"},
			Components: map[string]appsv1alpha1.ComponentKind{"web": {Group: "apps", Version: "v1", Kind: "Deployment"}, "config": {Version: "v1", Kind: "ConfigMap"}},
		},
		Status: appsv1alpha1.ApplicationStatus{
			Ready: "True", Health: appsv1alpha1.HealthHealthy, ComponentsInstalled: "2/2", Message: "All is well.", Installed: []string{"web", "config"},
			Conditions:   []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready", Message: "It is.", LastTransitionTime: now}},
			Components:   []appsv1alpha1.ComponentStatus{{Name: "web", Group: "apps", Kind: "Deployment", Installed: "True", Health: "Healthy", Reason: "r", Message: "m", Since: &now}},
			Dependencies: []appsv1alpha1.DependencyStatus{{Name: "db", Installed: "False", Ready: "Unknown", Health: "Missing"}},
		},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		t.Fatal(err)
	}
	r := testReducer()
	for range 2 {
		rec, kept := r.Reduce(ApplicationKind, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)})
		if !kept {
			t.Fatal("want the Application to be kept")
		}
		got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rec.(*Application).unpacked())
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(fields); fmt.Sprint(got) != want {
			t.Errorf("want %s\ngot %v", want, got)
		}
	}
}

// Any Application is unchanged by packing and unpacking, and is packed to the same text again.
func FuzzPacked(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add(vocabulary)
	f.Add([]byte(`{"metadata":{"name":"a\u0000b"},"spec":{"components":{"":{"kind":"<&>"}},"healthCheck":{"template":{"spec":{"containers":[{"name":"c"}]}}}}}`))
	p := NewPacker()
	f.Fuzz(func(t *testing.T, data []byte) {
		app := &appsv1alpha1.Application{}
		if json.Unmarshal(data, app) != nil {
			return
		}
		text, err := p.pack(app)
		if err != nil {
			return // A time in a year of five digits has no JSON.
		}
		got, err := p.unpack(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.pack(got)
		if err != nil || again != text {
			t.Errorf("want the same text, got %q and %q, %v", text, again, err)
		}
		if got.Name != app.Name || !equality.Semantic.DeepEqual(got.Spec.Components, app.Spec.Components) && len(app.Spec.Components) > 0 {
			t.Errorf("want %v, got %v", app, got)
		}
	})
}

func BenchmarkPacked(b *testing.B) {
	app := &appsv1alpha1.Application{}
	if err := json.Unmarshal(vocabulary, app); err != nil {
		b.Fatal(err)
	}
	app.Name, app.UID = "wordpress", "5e5f1d3a-7a9a-4f43-9d59-1e0c3c1a55e1"
	app.Spec.Components["another"] = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "CronJob", Name: "nightly-report"}
	p := NewPacker()
	text, err := p.pack(app)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Pack", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(float64(len(text)), "bytes/Application")
		for b.Loop() {
			if _, err := p.pack(app); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Unpack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.unpack(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
