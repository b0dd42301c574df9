// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestOnlyWhatSourcesReadOfASecretIsKept(t *testing.T) {
	now := metav1.NewTime(time.Now())
	kind := metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	kept := metav1.ObjectMeta{
		Namespace: "fleet", Name: "w1-kubeconfig", UID: "1", ResourceVersion: "5", CreationTimestamp: now, DeletionTimestamp: &now,
		Labels: map[string]string{fleetv1alpha1.EnrollLabel: "default", clusterv1.ClusterNameLabel: "w1"},
		Annotations: map[string]string{
			fleetv1alpha1.ClusterIdentifierAnnotation: "prod", fleetv1alpha1.TakeOverFromAnnotation: "hub-b",
		},
	}
	big := strings.Repeat("é", 128<<10)
	cases := map[string]struct {
		reason string
		change func(*metav1.ObjectMeta)
		want   func(*metav1.ObjectMeta)
	}{
		"Everything": {"What is read is kept.", func(*metav1.ObjectMeta) {}, func(*metav1.ObjectMeta) {}},
		"Others": {
			"What nobody reads is not kept, however it is called.",
			func(m *metav1.ObjectMeta) {
				m.Labels["theirs"], m.Annotations["theirs"], m.Annotations["masthead.dev/theirs"] = "x", big, big
				m.Finalizers, m.OwnerReferences = []string{big}, []metav1.OwnerReference{{Name: big}}
				m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: big}}
			},
			func(*metav1.ObjectMeta) {},
		},
		"TooLong": {
			"What is read is cut, between characters.",
			func(m *metav1.ObjectMeta) { m.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation] = "x" + big },
			func(m *metav1.ObjectMeta) {
				m.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation] = "x" + strings.Repeat("é", (maxSourceText-1)/2)
			},
		},
		"None": {
			"There may be nothing.",
			func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = nil, map[string]string{"theirs": big} },
			func(m *metav1.ObjectMeta) { m.Labels, m.Annotations = nil, nil },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in, want := kept.DeepCopy(), kept.DeepCopy()
			tc.change(in)
			tc.want(want)
			got, err := onlyWhatSourcesRead(&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: *in})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: *want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "fleet/w1-kubeconfig"}
	if got, err := onlyWhatSourcesRead(tombstone); err != nil || got != tombstone {
		t.Errorf("want a tombstone as it is, got %v (%v)", got, err)
	}
}
