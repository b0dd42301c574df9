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
	"github.com/masthead-dev/masthead/pkg/condition"
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
		if _, ours := parseClusterName(p); !ours || class == "" {
			continue
		}
		n := counts[class]
		n.enrolled++
		if meta.IsStatusConditionTrue(p.Status.Conditions, fleetv1alpha1.ConditionConnected) {
			n.connected++
		}
		counts[class] = n
	}
	return counts
}

// classStatus computes the status of a class from its current one.
func classStatus(class *fleetv1alpha1.EnrollmentClass, n classCount, now time.Time) fleetv1alpha1.EnrollmentClassStatus {
	return fleetv1alpha1.EnrollmentClassStatus{
		ObservedGeneration: class.Generation,
		EnrolledClusters:   n.enrolled,
		ConnectedClusters:  n.connected,
		Conditions: stamp(class.Status.Conditions, append(classReady(class), clustersConnected(n)),
			class.Generation, now),
	}
}

// classReady reports whether clusters can be enrolled with a class, which depends only on the class. It does not repeat
// the schema's checks.
func classReady(class *fleetv1alpha1.EnrollmentClass) []metav1.Condition {
	ready := metav1.Condition{
		Type: fleetv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAccepted,
		Message: "Clusters can be enrolled with this class",
	}
	message := unreadableSelector(class)
	if message == "" {
		return []metav1.Condition{ready}
	}
	ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, fleetv1alpha1.ReasonInvalidSelector, message
	stalled := ready
	stalled.Type, stalled.Status = fleetv1alpha1.ConditionStalled, metav1.ConditionTrue
	return []metav1.Condition{ready, stalled}
}

// unreadableSelector returns which selector of a class cannot be parsed, and why. The schema of a label selector allows
// meaningless operators and values.
func unreadableSelector(class *fleetv1alpha1.EnrollmentClass) string {
	for _, s := range []struct {
		field   string
		allowed *fleetv1alpha1.AllowedNamespaces
	}{
		{"spec.allowedNamespaces.selector", class.Spec.AllowedNamespaces},
		{"spec.agent.allowedTargetNamespaces.selector", class.Spec.Agent.AllowedTargetNamespaces},
	} {
		if s.allowed == nil || s.allowed.Selector == nil {
			continue
		}
		if _, err := metav1.LabelSelectorAsSelector(s.allowed.Selector); err != nil {
			return condition.Text(fmt.Sprintf("The selector in %s selects nothing: %v", s.field, err), maxMessageLength)
		}
	}
	return ""
}

// clustersConnected reports how many of a class's clusters are connected. It is separate from Ready: a paused or dead
// cluster is no fault of the class.
func clustersConnected(n classCount) metav1.Condition {
	c := metav1.Condition{
		Type: fleetv1alpha1.ConditionClustersConnected, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAllConnected,
		Message: fmt.Sprintf("%d of %d enrolled clusters are connected", n.connected, n.enrolled),
	}
	switch {
	case n.enrolled == 0:
		c.Reason, c.Message = fleetv1alpha1.ReasonNoClusters, "No enrolled cluster names this class"
	case n.connected != n.enrolled:
		c.Status, c.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonClustersNotConnected
	}
	return c
}
