// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// An Application that another one discovers is kept as one, with its marks.
func TestAMarkedApplication(t *testing.T) {
	r := reducerOfACluster()
	app := &appsv1alpha1.Application{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1alpha1.GroupVersion.String(), Kind: "Application"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "u", Labels: partOf("suite")},
	}
	reduced := func() kindwatch.Record {
		fields, err := toFields(app)
		if err != nil {
			t.Fatal(err)
		}
		rec, _ := r.reduce(applicationKind, fields)
		return rec
	}
	plain := reduced()
	r.wanted.want(applicationKey{Namespace: "ns", Name: "suite"}, []mark{markOf(markPartOf, "ns", "suite")})
	found, again := reduced(), reduced()
	m := markingsOf(found)
	if markingsOf(plain) != nil || m == nil || !slices.Contains(found.IndexKeys(), string(m.marks[0])) {
		t.Fatalf("want only the one that is looked for to have a mark, got %+v and %+v", plain, found)
	}
	if !found.Equal(again) || found.Equal(plain) || plain.Equal(found) || found.Size() <= plain.Size() {
		t.Error("equal records must be equal, and only these, and marks must be paid for")
	}
	if got := applicationIn(&kindwatch.Entry{Record: found}); got == nil || got.Name != "shop" || componentOf(found) == nil {
		t.Errorf("want it to be an Application and a component, got %+v", got)
	}
}
