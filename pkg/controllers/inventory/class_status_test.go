// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestClassStatus(t *testing.T) {
	in := func(class string, state connection.State) inventoryv1alpha1.ClusterProfile {
		p := published()
		p.Status = desiredStatus(testKey, testCluster(func(c *connection.Cluster) {
			c.Enrolment.Class, c.State = class, state
		}), nil, nil, 1, before)
		return *p
	}
	foreign := in("gold", connection.StateConnected)
	foreign.Spec.ClusterManager.Name = "other"
	accepted := metav1.Condition{
		Type: "Ready", Status: "True", Reason: fleetv1alpha1.ReasonAccepted, Message: "Clusters can be enrolled with this class",
	}
	cases := map[string]struct {
		reason   string
		profiles []inventoryv1alpha1.ClusterProfile
		want     fleetv1alpha1.EnrollmentClassStatus
	}{
		"NoClusters": {
			reason:   "A class without clusters is ready to be used; other managers' profiles do not count.",
			profiles: []inventoryv1alpha1.ClusterProfile{in("other", connection.StateConnected), foreign},
			want: fleetv1alpha1.EnrollmentClassStatus{ObservedGeneration: 3, Conditions: []metav1.Condition{accepted, {
				Type: "ClustersConnected", Status: "True", Reason: fleetv1alpha1.ReasonNoClusters,
				Message: "No enrolled cluster names this class",
			}}},
		},
		"AllConnected": {
			reason:   "Every cluster of the class is connected; clusters of other classes do not count.",
			profiles: []inventoryv1alpha1.ClusterProfile{in("gold", connection.StateConnected), in("other", connection.StateBackoff)},
			want: fleetv1alpha1.EnrollmentClassStatus{
				ObservedGeneration: 3, EnrolledClusters: 1, ConnectedClusters: 1,
				Conditions: []metav1.Condition{accepted, {
					Type: "ClustersConnected", Status: "True", Reason: fleetv1alpha1.ReasonAllConnected,
					Message: "1 of 1 enrolled clusters are connected",
				}},
			},
		},
		"SomeNotConnected": {
			reason:   "A cluster whose probes fail is not one that works.",
			profiles: []inventoryv1alpha1.ClusterProfile{in("gold", connection.StateConnected), in("gold", connection.StateDegraded)},
			want: fleetv1alpha1.EnrollmentClassStatus{
				ObservedGeneration: 3, EnrolledClusters: 2, ConnectedClusters: 1,
				Conditions: []metav1.Condition{accepted, {
					Type: "ClustersConnected", Status: "False", Reason: fleetv1alpha1.ReasonClustersNotConnected,
					Message: "1 of 2 enrolled clusters are connected",
				}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			class := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "gold", Generation: 3}}
			for i := range tc.want.Conditions {
				tc.want.Conditions[i].ObservedGeneration = 3
				tc.want.Conditions[i].LastTransitionTime = metav1.NewTime(now)
			}
			got := classStatus(class, countByClass(tc.profiles)[class.Name], now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
