// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// classCount is how many clusters name a class.
type classCount struct {
	enrolled, connected int32
}

// countByClass counts the clusters of each class, by the class's name.
func countByClass(clusters []connection.Cluster) map[string]classCount {
	counts := map[string]classCount{}
	for _, c := range clusters {
		n := counts[c.Enrolment.Class]
		n.enrolled++
		if c.State == connection.StateConnected {
			n.connected++
		}
		counts[c.Enrolment.Class] = n
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
