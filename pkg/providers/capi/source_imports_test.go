// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package capi

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestAnImportsPauseIsNotTheUsers(t *testing.T) {
	imported := func(change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
		c := newCluster(func(c *clusterv1.Cluster) {
			c.Spec.Paused = new(true)
			c.Labels[fleetv1alpha1.ImportUIDLabel] = "import-uid"
			c.Annotations = map[string]string{fleetv1alpha1.ImportPausedAnnotation: "import-uid"}
		})
		for _, fn := range change {
			fn(c)
		}
		return c
	}
	theImport := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1", UID: "import-uid"}}
	another := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1", UID: "another-uid"}}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		imports []client.Object
		off     bool
		want    bool
	}{
		"ByImport":   {reason: "The import keeps it paused.", cluster: imported(), imports: []client.Object{theImport}, want: false},
		"ImportGone": {reason: "Only its author keeps it paused.", cluster: imported(), want: true},
		"OtherImport": {
			reason: "The import of that name is another one.", cluster: imported(), imports: []client.Object{another}, want: true,
		},
		"OnlyAnnotated": {
			reason:  "What does not bear the label was not made by the import.",
			cluster: imported(func(c *clusterv1.Cluster) { delete(c.Labels, fleetv1alpha1.ImportUIDLabel) }),
			imports: []client.Object{theImport}, want: true,
		},
		"ByUserToo": {
			reason:  "The annotation is the user's.",
			cluster: imported(func(c *clusterv1.Cluster) { c.Annotations[clusterv1.PausedAnnotation] = "" }),
			imports: []client.Object{theImport}, want: true,
		},
		"ImportsOff": {reason: "No controller reconciles imports.", cluster: imported(), imports: []client.Object{theImport}, off: true, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			source := newSource(t, tc.cluster, newSecret())
			scheme := runtime.NewScheme()
			if err := fleetv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if !tc.off {
				source.imports = fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.imports...).Build()
			}
			got, err := source.Describe(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c1"})
			if err != nil || got == nil || got.Paused != tc.want {
				t.Errorf("%s\nDescribe(...): want paused: %v, got %+v, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}
