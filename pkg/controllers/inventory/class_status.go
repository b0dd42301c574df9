// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// classCount is how many clusters name a class.
type classCount struct {
	enrolled, connected int32
}

// countByClass counts the clusters in the inventory by the name of their class.
func countByClass(profiles []inventoryv1alpha1.ClusterProfile) map[string]classCount {
	counts := map[string]classCount{}
	for i := range profiles {
		p := &profiles[i]
		class := propertyValue(p.Status.Properties, PropertyEnrollmentClass)
		if _, ours := clusterOf(p); !ours || class == "" {
			continue
		}
		n := counts[class]
		n.enrolled++
		if meta.IsStatusConditionTrue(p.Status.Conditions, ConditionConnected) {
			n.connected++
		}
		counts[class] = n
	}
	return counts
}

// classStatus computes the status of a class, given what it is now.
func classStatus(class *fleetv1alpha1.EnrollmentClass, n classCount, now time.Time) fleetv1alpha1.EnrollmentClassStatus {
	ready := metav1.Condition{Type: fleetv1alpha1.ConditionReady, Status: metav1.ConditionTrue}
	switch {
	case n.enrolled == 0:
		ready.Reason = fleetv1alpha1.ReasonNoClusters
		ready.Message = "No enrolled cluster names this class"
	case n.connected == n.enrolled:
		ready.Reason = fleetv1alpha1.ReasonAllConnected
		ready.Message = fmt.Sprintf("%d of %d enrolled clusters are connected", n.connected, n.enrolled)
	default:
		ready.Status = metav1.ConditionFalse
		ready.Reason = fleetv1alpha1.ReasonClustersNotConnected
		ready.Message = fmt.Sprintf("%d of %d enrolled clusters are connected", n.connected, n.enrolled)
	}
	return fleetv1alpha1.EnrollmentClassStatus{
		ObservedGeneration: class.Generation,
		EnrolledClusters:   n.enrolled,
		ConnectedClusters:  n.connected,
		Conditions:         stamp(class.Status.Conditions, []metav1.Condition{ready}, class.Generation, now),
	}
}
