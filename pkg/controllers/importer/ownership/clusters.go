// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// SameCluster reports whether two imports are of the same cluster: by the cloud's ID, or else by what they name. Only
// imports with the same provider configuration are compared: with their own configuration, which can lead to their own
// cloud, a tenant could present anybody's cluster ID and block its import. Provider configurations of one name in two
// namespaces are two, unless the kind is cluster-scoped.
func SameCluster(a, b *fleetv1alpha1.ClusterImport, configsAreNamespaced bool) bool {
	if a.UID == b.UID {
		return false
	}
	configA, configB := WantedImport(a).ProviderConfig, WantedImport(b).ProviderConfig
	if a.Namespace != b.Namespace && (configA != configB || configsAreNamespaced && configA.Kind == "ProviderConfig") {
		return false
	}
	if a.Status.Observed != nil && b.Status.Observed != nil && a.Status.Observed.ID != "" && strings.EqualFold(a.Status.Observed.ID, b.Status.Observed.ID) {
		return true
	}
	return identifiers(a) == identifiers(b)
}

// identifiers are all fields of the spec that identify the cluster.
func identifiers(imp *fleetv1alpha1.ClusterImport) [5]string {
	w := WantedImport(imp)
	if w.Cloud == reflection.AKS { // Azure's names have no case.
		w.ResourceGroupName, w.ClusterName = strings.ToLower(w.ResourceGroupName), strings.ToLower(w.ClusterName)
	}
	return [5]string{string(w.Cloud), w.Region + w.ResourceGroupName + w.Location, w.ClusterName, w.ProviderConfig.Kind, w.ProviderConfig.Name}
}

// Counts reports whether an import is relevant: it may use its provider configuration, and is not held by a foreign
// finalizer alone. This does not wait for its status, which may never be written.
func Counts(imp *fleetv1alpha1.ClusterImport, beside string, configAllows func(namespace string) bool) bool {
	if !imp.DeletionTimestamp.IsZero() && !slices.Contains(imp.Finalizers, fleetv1alpha1.ImportFinalizer) {
		return false
	}
	return imp.Namespace == beside || configAllows == nil || configAllows(imp.Namespace)
}

// IsRevoked reports whether an import may no longer use its provider configuration, and so has removed what it created.
func IsRevoked(imp *fleetv1alpha1.ClusterImport) bool {
	c := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionPreflight)
	return c != nil && c.Reason == fleetv1alpha1.ReasonProviderConfigNotAllowed
}

// IsOlder reports whether an import was created before another.
func IsOlder(a, b *fleetv1alpha1.ClusterImport) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
