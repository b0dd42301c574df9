// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Names of the properties of a ClusterProfile of ours.
const (
	// PropertyClusterUID is the UID of the cluster's kube-system namespace.
	PropertyClusterUID = "fleet.masthead.dev/cluster-uid"

	// PropertyClusterIdentifier is the identifier of the cluster on its claims in the hub.
	PropertyClusterIdentifier = "fleet.masthead.dev/cluster-identifier"

	// PropertyEnrollmentClass is the EnrollmentClass that the cluster names.
	PropertyEnrollmentClass = "fleet.masthead.dev/enrollment-class"

	// PropertySource is the source that the cluster comes from.
	PropertySource = "fleet.masthead.dev/source"
)

const (
	// maxPropertyLength is the limit of ClusterProfile's schema. A longer value is left out: truncated, it would be wrong.
	maxPropertyLength = 1024

	// maxVersionLength bounds the version that a cluster reports.
	maxVersionLength = 64
)

// desiredMetadata is the desired metadata and spec of a cluster's profile.
func desiredMetadata(key connection.Key, cluster connection.Cluster) *inventoryv1alpha1.ClusterProfile {
	at := key.Published()
	owner := cluster.Enrolment.Object
	return &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   at.Namespace,
			Name:        at.Name,
			Labels:      map[string]string{inventoryv1alpha1.LabelClusterManagerKey: fleetv1alpha1.FieldManager},
			Annotations: map[string]string{fleetv1alpha1.ClusterNameAnnotation: string(cluster.Name)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: owner.GroupVersion().String(),
				Kind:       owner.Kind,
				Name:       owner.Name,
				UID:        owner.UID,
			}},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{
			DisplayName:    key.Name,
			ClusterManager: inventoryv1alpha1.ClusterManager{Name: fleetv1alpha1.FieldManager},
		},
	}
}

// desiredStatus is the desired status of a cluster's profile, given the current one. existing is nil if there is no
// profile yet; generation is the profile's when the status is written; refused are the definitions that could not be
// put into the cluster.
func desiredStatus(
	key connection.Key, cluster connection.Cluster, refused map[string]string,
	existing *inventoryv1alpha1.ClusterProfile, generation int64, now time.Time,
) inventoryv1alpha1.ClusterProfileStatus {
	previous := inventoryv1alpha1.ClusterProfileStatus{}
	if existing != nil {
		previous = existing.Status
	}

	// Observations of one object's cluster do not apply to another object of the same name.
	remembered := inventoryv1alpha1.ClusterProfileStatus{}
	owner := func(o metav1.OwnerReference) bool { return o.UID == cluster.Enrolment.Object.UID }
	if existing != nil && slices.ContainsFunc(existing.OwnerReferences, owner) {
		remembered = existing.Status
	}

	status := inventoryv1alpha1.ClusterProfileStatus{
		Conditions: stamp(previous.Conditions, currentConditions(cluster, refused, remembered), generation, now),
		Version:    desiredVersion(cluster, remembered),

		AccessProviders: accessProviders(cluster, remembered),
	}
	for _, p := range []struct{ name, value string }{
		{PropertyClusterIdentifier, observed(cluster, cluster.EffectiveIdentifier(), remembered, PropertyClusterIdentifier)},
		{PropertyClusterUID, observed(cluster, cluster.UID, remembered, PropertyClusterUID)},
		{PropertyEnrollmentClass, cluster.Enrolment.Class},
		{PropertySource, key.Source},
	} {
		if p.value == "" || len([]rune(p.value)) > maxPropertyLength {
			continue
		}
		status.Properties = append(status.Properties, property(previous.Properties, p.name, p.value, now))
	}
	return status
}

// currentConditions are the conditions of a cluster, or the last published ones until a first attempt to connect has an
// outcome. Otherwise each restart of the manager would take every cluster of the fleet through False.
func currentConditions(
	cluster connection.Cluster, refused map[string]string, remembered inventoryv1alpha1.ClusterProfileStatus,
) []metav1.Condition {
	current := conditions(cluster, refused)
	if connectedNow(cluster) || cluster.Reason != fleetv1alpha1.ReasonConnecting {
		return current
	}
	for i, c := range current {
		if before := meta.FindStatusCondition(remembered.Conditions, c.Type); before != nil {
			current[i] = *before
		}
	}
	return current
}

// observed is the value of a property that is only visible through a connection: the current one if there is a
// connection, else the last published. A refused connection led to a cluster that is not, or may not be, this
// profile's, so its values are not published.
func observed(
	cluster connection.Cluster, current string, remembered inventoryv1alpha1.ClusterProfileStatus, name string,
) string {
	if connectedNow(cluster) && current != "" {
		return current
	}
	return propertyValue(remembered.Properties, name)
}

func desiredVersion(
	cluster connection.Cluster, remembered inventoryv1alpha1.ClusterProfileStatus,
) inventoryv1alpha1.ClusterVersion {
	if connectedNow(cluster) && cluster.KubernetesVersion != "" {
		return inventoryv1alpha1.ClusterVersion{Kubernetes: condition.Text(cluster.KubernetesVersion, maxVersionLength)}
	}
	return remembered.Version
}

// stamp sets the generation and the last transition time of conditions.
func stamp(previous, current []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	stamped := make([]metav1.Condition, 0, len(current))
	for _, c := range current {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		if before := meta.FindStatusCondition(previous, c.Type); before != nil && before.Status == c.Status {
			c.LastTransitionTime = before.LastTransitionTime
		}
		stamped = append(stamped, c)
	}
	return stamped
}

// property is a property with the time at which this value was first observed.
func property(previous []inventoryv1alpha1.Property, name, value string, now time.Time) inventoryv1alpha1.Property {
	for _, p := range previous {
		if p.Name == name && p.Value == value {
			return p
		}
	}
	return inventoryv1alpha1.Property{Name: name, Value: value, LastObservedTime: metav1.NewTime(now).Rfc3339Copy()}
}

func propertyValue(properties []inventoryv1alpha1.Property, name string) string {
	for _, p := range properties {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}
