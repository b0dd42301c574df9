// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// An Application that another one discovers is kept as one, with its marks.
func TestAMarkedApplication(t *testing.T) {
	r := testReducer()
	r.wanted = NewWantedMarks(clock.RealClock{})
	app := &appsv1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1alpha1.GroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "u", Labels: map[string]string{appsv1alpha1.PartOfLabel: "suite"}},
	}
	reduced := func() kindwatch.Record {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
		if err != nil {
			t.Fatal(err)
		}
		rec, _ := r.Reduce(ApplicationKind, &unstructured.Unstructured{Object: fields})
		return rec
	}
	plain := reduced()
	r.wanted.Want(ApplicationKey{Namespace: "ns", Name: "suite"}, []Mark{newMark(markPartOf, "ns", "suite")})
	found, again := reduced(), reduced()
	m := GetMarkings(found)
	if GetMarkings(plain) != nil || m == nil || !slices.Contains(found.IndexKeys(), string(m.Marks[0])) {
		t.Fatalf("want only the one that is looked for to have a mark, got %+v and %+v", plain, found)
	}
	if !found.Equal(again) || found.Equal(plain) || plain.Equal(found) || found.Size() <= plain.Size() {
		t.Error("equal records must be equal, and only these, and marks must be paid for")
	}
	if got := ApplicationIn(&kindwatch.Entry{Record: found}); got == nil || got.Name != "shop" || GetComponent(found) == nil {
		t.Errorf("want it to be an Application and a component, got %+v", got)
	}
}
