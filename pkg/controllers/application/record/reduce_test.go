// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// keptKind is a kind of components.
var keptKind = kindwatch.Kind{
	GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", MetadataOnly: true,
}

func testReducer() Reducer {
	assessor := health.New()
	return NewReducer(func() health.Assessor { return assessor }, &Texts{}, NewPacker(), nil)
}

func TestReduce(t *testing.T) {
	ref := func(apiVersion, kind, uid string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": "shop", "uid": uid}
	}
	for _, tc := range []struct {
		name, reason string
		metadata     map[string]any
		want         *Component
	}{
		{name: "unrelated", reason: "Nothing is kept of what has nothing to do with an Application.", metadata: map[string]any{"labels": map[string]any{"app": "shop"}}},
		{
			name: "annotated", reason: "It says that it is a component.",
			metadata: map[string]any{"annotations": map[string]any{appsv1alpha1.ApplicationAnnotation: "shop"}},
			want:     &Component{Application: ApplicationKey{Namespace: "ns", Name: "shop"}},
		},
		{
			name: "long annotation", reason: "No Application has such a name.",
			metadata: map[string]any{"annotations": map[string]any{appsv1alpha1.ApplicationAnnotation: strings.Repeat("a", 254)}},
		},
		{
			name: "owned", reason: "The position and the number are needed to remove the reference.",
			metadata: map[string]any{"ownerReferences": []any{ref("v1", "ConfigMap", "x"), ref("apps.masthead.dev/v1alpha9", "Application", "y")}},
			want:     &Component{Owners: []Owner{{UID: "y", Position: 1}}, References: 2},
		},
		{
			name: "owned by another group's", reason: "It has the same kind, and is not ours.",
			metadata: map[string]any{"ownerReferences": []any{ref("app.k8s.io/v1beta1", "Application", "y")}},
		},
		{
			name: "nonsense", reason: "Malformed metadata causes no panic.",
			metadata: map[string]any{"ownerReferences": []any{1, "x", map[string]any{"uid": 7}}, "annotations": []any{"x"}, "labels": "x"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.metadata["name"], tc.metadata["namespace"] = "settings", "ns"
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tc.metadata}}
			got, kept := testReducer().Reduce(keptKind, obj)
			if kept != (tc.want != nil) {
				t.Fatalf("%s Got %v, %t", tc.reason, got, kept)
			}
			if !kept {
				return
			}
			rec := got.(*Component)
			if rec.Application != tc.want.Application || rec.References != tc.want.References || !reflect.DeepEqual(rec.Owners, tc.want.Owners) {
				t.Errorf("%s Want %+v, got %+v", tc.reason, tc.want, rec)
			}
		})
	}
}

func TestAJobHasFinished(t *testing.T) {
	ended := func(conditionType, status string) map[string]any {
		return map[string]any{"conditions": []any{"nonsense", map[string]any{"type": conditionType, "status": status}}}
	}
	limited := map[string]any{"ttlSecondsAfterFinished": int64(0)}
	for name, tc := range map[string]struct {
		reason       string
		kind         string
		spec, status any
		want         bool
	}{
		"Complete":     {"It is deleted at once.", "Job", limited, ended("Complete", "True"), true},
		"Failed":       {"It has not completed.", "Job", limited, ended("Failed", "True"), false},
		"NotYet":       {"It has not completed.", "Job", limited, ended("Complete", "False"), false},
		"WithoutLimit": {"It stays.", "Job", map[string]any{}, ended("Complete", "True"), false},
		"NoNumber":     {"It stays.", "Job", map[string]any{"ttlSecondsAfterFinished": "5"}, ended("Complete", "True"), false},
		"Nonsense":     {"There is no panic.", "Job", limited, map[string]any{"conditions": "x"}, false},
		"OtherKind":    {"The field means nothing there.", "Workflow", limited, ended("Complete", "True"), false},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": tc.kind, "spec": tc.spec, "status": tc.status}}
			obj.SetName("migrate")
			obj.SetNamespace("ns")
			obj.SetAnnotations(map[string]string{appsv1alpha1.ApplicationAnnotation: "shop"})
			kind := kindwatch.Kind{GroupVersionKind: obj.GroupVersionKind(), StatusSubresource: true}
			got, _ := testReducer().Reduce(kind, obj)
			if rec := got.(*Component); rec.Finished != tc.want {
				t.Errorf("%s Want %t, got %+v", tc.reason, tc.want, rec)
			}
		})
	}
}

func TestLabelSet(t *testing.T) {
	in := map[string]string{"app": "shop", "empty": "", "tier": "web", "b\x00ad": "x", "worse": "a\x00pp\x00other"}
	set := NewLabelSet(in)
	for key, want := range map[string]string{"app": "shop", "empty": "", "tier": "web"} {
		if got, ok := set.Lookup(key); !ok || got != want || !set.Has(key) || set.Get(key) != want {
			t.Errorf("%s: want %q, got %q %t", key, want, got, ok)
		}
	}
	for _, key := range []string{"shop", "b", "ad", "pp", "worse", "", "other"} {
		if set.Has(key) {
			t.Errorf("want no label %q", key)
		}
	}
	if (LabelSet{}).Has("app") || NewLabelSet(nil).Has("app") {
		t.Error("want no labels where there are none")
	}
	if set != NewLabelSet(in) || set == NewLabelSet(map[string]string{"app": "shop"}) {
		t.Error("want sets to be equal if their labels are")
	}
	selector, err := labels.Parse("app=shop,tier in (web,db),!old")
	if err != nil {
		t.Fatal(err)
	}
	if !selector.Matches(set) {
		t.Error("want the selector to match")
	}
}

// Reducing any object does not panic, does not change it, and is repeatable.
func FuzzReduce(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"metadata":{"annotations":{"kubernetes.io/application":"shop"},"ownerReferences":[{"apiVersion":"apps.masthead.dev/v1","kind":"Application","uid":"x"}]}}`,
		`{"metadata":{"annotations":7,"labels":[1],"ownerReferences":{}},"status":{"conditions":[{"type":"Ready"}]}}`,
		`{"metadata":{"labels":{"apps.masthead.dev/health-check":"shop","apps.masthead.dev/template-hash":"x"}},"status":{"phase":1}}`,
		`{"spec":{"components":{"a":{"kind":1}},"selector":{}},"status":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	r := testReducer()
	deployments := kindwatch.Kind{GroupVersionKind: keptKind.GroupVersionKind, Resource: "deployments", StatusSubresource: true}
	f.Fuzz(func(t *testing.T, data []byte) {
		var fields map[string]any
		if json.Unmarshal(data, &fields) != nil || fields == nil {
			return
		}
		for _, kind := range []kindwatch.Kind{ApplicationKind, DefinitionKind, APIServiceKind, HealthCheckPodKind, keptKind, deployments} {
			obj := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
			first, kept := r.Reduce(kind, obj)
			if !reflect.DeepEqual(obj.Object, fields) {
				t.Fatalf("the object was changed: %v", obj.Object)
			}
			second, again := r.Reduce(kind, obj)
			if kept != again {
				t.Fatal("it is kept once and not twice")
			}
			if !kept {
				continue
			}
			if !first.Equal(second) || first.Size() < 0 || len(first.IndexKeys()) > maxOwners+1 {
				t.Fatalf("got %+v and %+v", first, second)
			}
		}
	})
}
