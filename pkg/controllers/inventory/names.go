// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// isOurs reports whether Masthead wrote a ClusterProfile. Both marks are required: the label alone can be copied with a
// manifest, and another installation might use the same cluster manager name.
func isOurs(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.Labels[inventoryv1alpha1.LabelClusterManagerKey] == fleetv1alpha1.FieldManager &&
		profile.Spec.ClusterManager.Name == fleetv1alpha1.FieldManager
}

// parseClusterName returns the name of the cluster that a ClusterProfile of ours describes. A profile that names a
// cluster whose profile belongs elsewhere has none: it was copied or altered, and must not describe that cluster.
func parseClusterName(profile *inventoryv1alpha1.ClusterProfile) (mcr.ClusterName, bool) {
	if !isOurs(profile) {
		return "", false
	}
	name := mcr.ClusterName(profile.Annotations[fleetv1alpha1.ClusterNameAnnotation])
	key, ok := connection.ParseClusterName(name)
	if !ok || key.Published() != (types.NamespacedName{Namespace: profile.Namespace, Name: profile.Name}) {
		return "", false
	}
	return name, true
}

// clusterAffectedBy returns the cluster whose ClusterProfile has the name of this one, regardless of who wrote this
// one. It maps the removal of a foreign profile, or of our marks on one, to the cluster that needs the name.
func clusterAffectedBy(profile *inventoryv1alpha1.ClusterProfile) (mcr.ClusterName, bool) {
	if name, ok := parseClusterName(profile); ok {
		return name, true
	}
	source, object, ok := strings.Cut(profile.Name, "-")
	if !ok || source == "" || object == "" {
		return "", false
	}
	return mcr.ClusterName(source + "/" + profile.Namespace + "/" + object), true
}
