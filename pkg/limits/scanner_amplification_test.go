// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// TestDecodedIsNotMoreThanTheCost decodes amplifying texts into the types into which answers of workload clusters are
// decoded. It compares the memory that they take with the cost that the Scanner gave them.
func TestDecodedIsNotMoreThanTheCost(t *testing.T) {
	repeat := func(head, element, tail string) string {
		n := 60_000 / len(element)
		return head + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + tail
	}
	const list = `{"apiVersion":"v1","kind":"List","metadata":{},"items":[`
	texts := map[string]string{
		"EmptyItems":     repeat(list, `{}`, `]}`),
		"EmptyMetadata":  repeat(list, `{"metadata":{}}`, `]}`),
		"SmallItems":     repeat(list, `{"a":0}`, `]}`),
		"EmptyResources": repeat(`{"resources":[`, `{}`, `]}`),
		"Versions":       repeat(list+`{"versions":[{"resources":[`, `{}`, `]}]}]}`),
		"Owners":         repeat(list+`{"metadata":{"ownerReferences":[`, `{}`, `]}}]}`),
		"ManagedFields":  repeat(list+`{"metadata":{"managedFields":[`, `{}`, `]}}]}`),
		"Arrays":         repeat(list+`{"spec":[`, `[]`, `]}]}`),
		"Numbers":        repeat(list+`{"spec":[`, `0`, `]}]}`),
		"Strings":        repeat(list+`{"spec":[`, `""`, `]}]}`),
		"Objects":        repeat(list+`{"spec":[`, `{"":[{"":0}]}`, `]}]}`),
		"Nested":         repeat(list+`{"spec":[`, strings.Repeat(`{"":`, 60)+`0`+strings.Repeat(`}`, 60), `]}]}`),
		"NotUTF8":        list + `{"spec":"` + strings.Repeat("\xff", 60_000) + `"}]}`,
		"Schemas":        repeat(list+`{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"allOf":[`, `{}`, `]}}}]}}]}`),
		"Finalizers":     repeat(list+`{"metadata":{"finalizers":[`, `""`, `]}}]}`),
	}
	into := map[string]func() any{
		"Metadata":           func() any { return &metav1.PartialObjectMetadataList{} },
		"Resources":          func() any { return &metav1.APIResourceList{} },
		"Groups":             func() any { return &metav1.APIGroupList{} },
		"AggregatedGroups":   func() any { return &apidiscoveryv2.APIGroupDiscoveryList{} },
		"Unstructured":       func() any { return &map[string]any{} },
		"Namespaces":         func() any { return &corev1.NamespaceList{} },
		"Secrets":            func() any { return &corev1.SecretList{} },
		"Definitions":        func() any { return &apiextensionsv1.CustomResourceDefinitionList{} },
		"UnstructuredObject": func() any { return &unstructured.Unstructured{} },
	}
	for name, text := range texts {
		data := []byte(text)
		s := limits.NewScanner("list", limits.Limits{})
		if _, err := s.Scan(data); err != nil || !s.Complete() {
			t.Fatalf("%s is no JSON: %v", name, err)
		}
		for what, newInto := range into {
			t.Run(name+"/"+what, func(t *testing.T) {
				before := liveHeap()
				out := newInto()
				if u, ok := out.(*unstructured.Unstructured); ok {
					_ = u.UnmarshalJSON(data)
				} else if what == "Unstructured" {
					_ = kjson.Unmarshal(data, out)
				} else {
					_ = json.Unmarshal(data, out) // An error of a type that does not fit ends it early.
				}
				grown := liveHeap() - before
				runtime.KeepAlive(out)
				if grown > s.Cost() {
					t.Errorf("%d bytes became %d, which is more than their cost of %d", len(data), grown, s.Cost())
				}
				if m, ok := out.(*map[string]any); ok && limits.Size(*m) > s.Cost() {
					t.Errorf("%d bytes have a size of %d, which is more than their cost of %d", len(data), limits.Size(*m), s.Cost())
				}
				t.Logf("%d bytes became %d, cost %d", len(data), grown, s.Cost())
			})
		}
		runtime.KeepAlive(data)
	}
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
