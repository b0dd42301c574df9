// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
)

// FuzzObject has a server send anything for an object: in a list, as an event, as metadata only, and as what was
// written. There is no panic, and each stored object has a name that can be requested.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{"metadata":{"namespace":"default","name":"a","uid":"1","resourceVersion":"5","annotations":{"example.org/app":"shop"}},"data":{"value":"x"}}`,
		`{"metadata":{"namespace":"default","name":"../a","annotations":{"example.org/app":"shop"}}}`,
		`{"metadata":{"namespace":7,"name":["a"],"annotations":{"example.org/app":null}},"data":"x"}`,
		`{"metadata":"a","data":{"value":{"value":1}}}`,
		`{"apiVersion":"v1","kind":"Table","metadata":{"managedFields":[{"manager":"x"},7,null]},"items":[]}`,
		`{"metadata":{"namespace":"default","name":"a","annotations":{"example.org/app":"shop","kubectl.kubernetes.io/last-applied-configuration":7}}}`,
		`{"metadata":{"namespace":"default","name":"a","ownerReferences":[{"uid":1}],"deletionTimestamp":"yesterday"}}`,
		`{}`, `{"metadata":{}}`, `{"metadata":null}`,
	} {
		f.Add([]byte(text), false, false)
		f.Add([]byte(text), true, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, clusterScoped, records bool) {
		var content map[string]any
		if err := json.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil || content == nil {
			return
		}
		var partial metav1.PartialObjectMetadata
		isPartial := json.UnmarshalCaseSensitivePreserveInts(data, &partial) == nil
		kind := configMaps
		kind.ClusterScoped = clusterScoped
		s := newStore(kind, func(e Event) {
			if e.Entry == nil && e.Object == nil {
				t.Errorf("want an event to say of what it is, got %+v", e)
			}
		}, func() {})
		if records {
			s.reduce, s.keepManager = reduceToNote, "x"
		}
		send := func(what func(runtime.Object) error) {
			for _, obj := range []runtime.Object{&unstructured.Unstructured{Object: (&unstructured.Unstructured{Object: content}).DeepCopy().Object}, partial.DeepCopy()} {
				if _, ok := obj.(*metav1.PartialObjectMetadata); ok && !isPartial {
					continue
				}
				if err := what(obj); err != nil {
					t.Fatal(err)
				}
				kept(t, s, records)
			}
		}
		send(func(obj runtime.Object) error { return s.replace(s.itemsFor(obj, obj), "4") })
		send(func(obj runtime.Object) error { s.update(obj); return nil })
		send(func(obj runtime.Object) error {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				s.observe(u)
			}
			return nil
		})
		send(func(obj runtime.Object) error {
			i, err := s.arrivedEvent(obj)
			if err != nil || i == nil || !i.kept() {
				return err
			}
			return s.replace([]*Item{i}, "5")
		})
		send(func(obj runtime.Object) error { s.delete(obj); return nil })
	})
}

// kept fails unless what is kept can be found by its name, and that can be part of a path.
func kept(t *testing.T, s *store, records bool) {
	t.Helper()
	items, _ := s.list()
	for _, i := range items {
		if (i.Record != nil) != records || (i.metadata != nil) == records {
			t.Fatalf("want records %v, got %+v", records, i)
		}
		if !isSegment(i.Key.Name) || (i.Key.Namespace == "") != s.kind.ClusterScoped || !s.kind.ClusterScoped && !isSegment(i.Key.Namespace) {
			t.Fatalf("want a name that can be part of a path, got %q", i.Key)
		}
		if !records {
			if key := objectKey(i.Object()); key != i.Key {
				t.Fatalf("want the key %q, that the object has, got %q", key, i.Key)
			}
		}
		if got, ok := s.get(i.Key); !ok || got != i {
			t.Fatalf("want %q to be found, got %v", i.Key, got)
		}
	}
}
