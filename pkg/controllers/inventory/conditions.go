// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

const (
	// maxMessageLength bounds what a cluster's own words can add to an object in the hub.
	maxMessageLength = 512

	// namedKinds is how many missing kinds a message names before it only counts.
	namedKinds = 5
)

// connectedNow says whether what a snapshot holds was seen through a connection that was accepted. While probes fail it
// still was; a refused or lost connection says nothing.
func connectedNow(cluster connection.Cluster) bool {
	return cluster.State == connection.StateConnected || cluster.State == connection.StateDegraded
}

// conditions computes the conditions of a cluster's profile, without times and generations.
func conditions(cluster connection.Cluster) []metav1.Condition {
	return []metav1.Condition{
		controlPlaneHealthy(cluster),
		connected(cluster),
		kindsServed(cluster),
	}
}

func connected(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{
		Type:    ConditionConnected,
		Reason:  cluster.Reason,
		Message: bounded(cluster.Message, maxMessageLength),
	}
	switch cluster.State {
	case connection.StateConnected:
		c.Status = metav1.ConditionTrue
		c.Reason = connection.ReasonConnected
	case connection.StateDegraded:
		c.Status = metav1.ConditionUnknown
	default:
		c.Status = metav1.ConditionFalse
	}
	if c.Reason == "" {
		// The API server requires one, and a state's name is the best that is known.
		c.Reason = string(cluster.State)
	}
	return c
}

func controlPlaneHealthy(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{Type: inventoryv1alpha1.ClusterConditionControlPlaneHealthy}
	if cluster.State != connection.StateConnected {
		return notConnected(c)
	}
	switch cluster.ControlPlaneHealthy {
	case metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonHealthy, "The API server is ready"
	case metav1.ConditionFalse:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonUnhealthy, "The API server answers and is not ready"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonNotProbed, "The API server has not been asked yet"
	}
	return c
}

func kindsServed(cluster connection.Cluster) metav1.Condition {
	c := metav1.Condition{Type: ConditionKindsServed}
	if cluster.State != connection.StateConnected {
		return notConnected(c)
	}
	if len(cluster.MissingKinds) == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonAllServed, "Every kind that is needed is served"
		return c
	}
	missing := slices.Clone(cluster.MissingKinds)
	slices.Sort(missing)
	more := ""
	if n := len(missing) - namedKinds; n > 0 {
		missing, more = missing[:namedKinds], fmt.Sprintf(" and %d more", n)
	}
	c.Status, c.Reason = metav1.ConditionFalse, ReasonKindsMissing
	c.Message = bounded("Not served: "+strings.Join(missing, ", "), maxMessageLength) + more
	return c
}

func notConnected(c metav1.Condition) metav1.Condition {
	c.Status, c.Reason, c.Message = metav1.ConditionUnknown, ReasonNotConnected, "There is no working connection"
	return c
}

// bounded cuts a text that somebody else supplied to at most so many characters, and makes it valid UTF-8.
func bounded(text string, limit int) string {
	runes := []rune(strings.ToValidUTF8(text, "?"))
	if len(runes) <= limit {
		return string(runes)
	}
	return string(runes[:limit-1]) + "…"
}
