// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

const (
	// maxMessageLength bounds the text that a cluster can add to an object in the hub.
	maxMessageLength = 512

	// namedKinds is how many missing kinds a message names before it only counts.
	namedKinds = 5
)

// connectedNow reports whether a snapshot was taken through an accepted connection. That still holds while probes fail,
// but not for a refused or lost connection.
func connectedNow(cluster connection.Cluster) bool {
	return cluster.State == connection.StateConnected || cluster.State == connection.StateDegraded
}

// conditions computes the conditions of a cluster's profile, without times and generations. refused are the definitions
// that could not be put into the cluster, and why.
func conditions(cluster connection.Cluster, refused map[string]string) []metav1.Condition {
	all := []metav1.Condition{
		controlPlaneHealthy(cluster),
		connected(cluster),
		kindsServed(refused),
		kindsSynced(cluster),
		withinLimits(cluster),
	}
	for i, c := range all {
		if cluster.State != connection.StateConnected && c.Type != fleetv1alpha1.ConditionConnected {
			all[i] = metav1.Condition{
				Type: c.Type, Status: metav1.ConditionUnknown, Reason: fleetv1alpha1.ReasonNotConnected, Message: "There is no working connection",
			}
		}
	}
	return all
}

// withinLimits reports whether everything that the cluster sends is read.
func withinLimits(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{Type: fleetv1alpha1.ConditionWithinLimits}
	if cluster.Refused.Reason == "" {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, fleetv1alpha1.ReasonWithinLimits, "No answer of the cluster was refused"
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, cluster.Refused.Reason
	c.Message = condition.Text(cluster.Refused.Message, maxMessageLength)
	return c
}

func connected(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{
		Type:    fleetv1alpha1.ConditionConnected,
		Reason:  cluster.Reason,
		Message: condition.Text(cluster.Message, maxMessageLength),
	}
	switch cluster.State {
	case connection.StateConnected:
		c.Status = metav1.ConditionTrue
		c.Reason = fleetv1alpha1.ReasonConnected
	case connection.StateDegraded:
		c.Status = metav1.ConditionUnknown
	default:
		c.Status = metav1.ConditionFalse
	}
	if c.Reason == "" {
		// The API server requires one, and the state's name is the best available.
		c.Reason = string(cluster.State)
	}
	return c
}

func controlPlaneHealthy(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{Type: inventoryv1alpha1.ClusterConditionControlPlaneHealthy}
	switch cluster.ControlPlaneHealthy {
	case metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, fleetv1alpha1.ReasonHealthy, "The API server is ready"
	case metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, fleetv1alpha1.ReasonUnhealthy, "The API server responds, but is not ready"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fleetv1alpha1.ReasonNotProbed, "The API server has not been probed yet"
	}
	return c
}

func kindsServed(refused map[string]string) metav1.Condition {
	c := metav1.Condition{Type: fleetv1alpha1.ConditionKindsServed}
	if len(refused) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, fleetv1alpha1.ReasonAllServed, "Every kind that is needed is served"
		return c
	}
	list := make([]string, 0, len(refused))
	for crd, reason := range refused {
		list = append(list, crd+" ("+reason+")")
	}
	c.Status, c.Reason = metav1.ConditionFalse, fleetv1alpha1.ReasonDefinitionsRefused
	c.Message = condition.Text("Definitions refused: "+abbreviate(list), maxMessageLength)
	return c
}

// kindsSynced reports whether everything that is watched is synced. The causes are ours, and kinds are names that the
// API allows: no other text of the cluster is included.
func kindsSynced(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{Type: fleetv1alpha1.ConditionKindsSynced}
	if len(cluster.Unsynced) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, fleetv1alpha1.ReasonAllSynced, "Every kind that is watched is synced"
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, string(cluster.Unsynced[0].Cause)
	list := make([]string, 0, len(cluster.Unsynced))
	for _, u := range cluster.Unsynced {
		list = append(list, u.Kind+" ("+string(u.Cause)+")")
		if string(u.Cause) != c.Reason {
			c.Reason = fleetv1alpha1.ReasonKindsNotSynced
		}
	}
	c.Message = condition.Text("Not synced: "+abbreviate(list), maxMessageLength)
	return c
}

// abbreviate names the first of a list, in a stable order, and counts the rest.
func abbreviate(list []string) string {
	slices.Sort(list)
	if n := len(list) - namedKinds; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:namedKinds], ", "), n)
	}
	return strings.Join(list, ", ")
}
