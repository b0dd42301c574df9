// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package closedcache

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestTrim(t *testing.T) {
	in := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "p", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
		Annotations: map[string]string{lastApplied: "{}", "kept": "yes"},
	}}
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"kept": "yes"}}}
	got, err := Trim(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "a"}
	if got, err := Trim(tombstone); err != nil || got != tombstone {
		t.Errorf("what is no object passes unchanged, got %v %v", got, err)
	}
}
