// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// ClusterNameAnnotation on a ClusterProfile of ours is the name of the cluster that it is about. The name of the
// profile alone does not say it: a long one is shortened.
const ClusterNameAnnotation = "fleet.masthead.dev/cluster"

// clusterKey is a cluster's name in its parts.
type clusterKey struct {
	source string
	object types.NamespacedName
}

// parseClusterName splits "<source>/<namespace>/<name>".
func parseClusterName(name mcr.ClusterName) (clusterKey, bool) {
	parts := strings.Split(string(name), "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return clusterKey{}, false
	}
	return clusterKey{source: parts[0], object: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}, true
}

// profileKey is where the ClusterProfile of a cluster lives: beside the enrolled object, named "<source>-<name>". A name
// that is too long for an object is cut, and ends in a digest so that two long names stay different.
func profileKey(key clusterKey) types.NamespacedName {
	name := key.source + "-" + key.object.Name
	if len(name) > validation.DNS1123SubdomainMaxLength {
		sum := sha256.Sum256([]byte(name))
		suffix := "-" + hex.EncodeToString(sum[:8])
		name = strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(suffix)], "-.") + suffix
	}
	return types.NamespacedName{Namespace: key.object.Namespace, Name: name}
}

// isOurs says whether Masthead wrote a ClusterProfile. Both marks are required: the label alone can be copied with a
// manifest, and the name of the cluster manager alone is what another installation might use too.
func isOurs(profile *inventoryv1alpha1.ClusterProfile) bool {
	return profile.Labels[inventoryv1alpha1.LabelClusterManagerKey] == fleetv1alpha1.FieldManager &&
		profile.Spec.ClusterManager.Name == fleetv1alpha1.FieldManager
}

// clusterOf returns the name of the cluster that a ClusterProfile of ours is about. A profile that names a cluster whose
// profile would live elsewhere is about none: it was copied or altered, and must not speak for that cluster.
func clusterOf(profile *inventoryv1alpha1.ClusterProfile) (mcr.ClusterName, bool) {
	if !isOurs(profile) {
		return "", false
	}
	name := mcr.ClusterName(profile.Annotations[ClusterNameAnnotation])
	key, ok := parseClusterName(name)
	if !ok || profileKey(key) != (types.NamespacedName{Namespace: profile.Namespace, Name: profile.Name}) {
		return "", false
	}
	return name, true
}

// clusterAffectedBy returns the cluster whose ClusterProfile has the name of this one, whoever wrote this one. It is how
// the removal of a foreign profile, or of our marks on one, reaches the cluster that needs the name.
func clusterAffectedBy(profile *inventoryv1alpha1.ClusterProfile) (mcr.ClusterName, bool) {
	if name, ok := clusterOf(profile); ok {
		return name, true
	}
	source, object, ok := strings.Cut(profile.Name, "-")
	if !ok || source == "" || object == "" {
		return "", false
	}
	return mcr.ClusterName(source + "/" + profile.Namespace + "/" + object), true
}
