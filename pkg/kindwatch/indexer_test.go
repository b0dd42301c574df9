// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestObjectsOfANamespaceAreThoseOfTheList does many things in no order. After each, what a namespace has is what the
// whole list has of it.
func TestObjectsOfANamespaceAreThoseOfTheList(t *testing.T) {
	kind, _ := widgets(t, "namespaces")
	s := newStore(kind, func(Event) {}, func() {})
	random := rand.New(rand.NewPCG(1, 2))
	version := 0
	some := func() *unstructured.Unstructured {
		version++
		obj := object(strconv.Itoa(random.IntN(8)), strconv.Itoa(random.IntN(2)), strconv.Itoa(version))
		obj.SetNamespace("n" + strconv.Itoa(random.IntN(3)))
		return obj
	}
	names := func(items []*Item, namespace string) []string {
		found := []string{}
		for _, i := range items {
			if i.Key.Namespace == namespace {
				found = append(found, i.Key.Name+" "+i.ResourceVersion)
			}
		}
		slices.Sort(found)
		return found
	}
	if err := s.replace(nil, "0"); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		var err error
		switch random.IntN(12) {
		case 0:
			all := make([]runtime.Object, random.IntN(12))
			for i := range all {
				all[i] = some()
			}
			err = s.replace(s.itemsFor(all...), strconv.Itoa(version))
		case 1, 2, 3:
			s.delete(some())
		case 4, 5:
			s.observe(some())
		default:
			s.update(some())
		}
		if err != nil {
			t.Fatal(err)
		}
		all, _ := s.list()
		for _, namespace := range []string{"n0", "n1", "n2", "n3"} {
			found, synced := s.namespace(namespace)
			if diff := cmp.Diff(names(all, namespace), names(found, namespace)); diff != "" || !synced || len(names(found, namespace)) != len(found) {
				t.Fatalf("version %d, namespace %s: synced %v, %d found (-list +namespace):\n%s", version, namespace, synced, len(found), diff)
			}
		}
	}
}
