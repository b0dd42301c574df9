// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// ImportedBefore finds an older import of the same cluster among all imports. configsAreNamespaced says that managed
// resources are, and configAllows which namespaces may use the provider configuration; nil if that is not known.
func ImportedBefore(
	imp *fleetv1alpha1.ClusterImport, all []fleetv1alpha1.ClusterImport, configsAreNamespaced bool, configAllows func(namespace string) bool,
) (*fleetv1alpha1.ClusterImport, bool) {
	for i := range all {
		other := &all[i]
		mayUse := other.Namespace == imp.Namespace || configAllows == nil || configAllows(other.Namespace)
		if mayUse && holdsObjects(other) && isOlder(other, imp) && sameCluster(imp, other, configsAreNamespaced) {
			return other, true
		}
	}
	return nil, false
}

// sameCluster reports whether two imports are of the same cluster: by the cloud's ID, or else by what they name. Only
// imports with the same provider configuration are compared: with their own configuration, which can lead to their own
// cloud, a tenant could present anybody's cluster ID and block its import. Provider configurations of one name in two
// namespaces are two, unless the kind is cluster-scoped.
func sameCluster(a, b *fleetv1alpha1.ClusterImport, configsAreNamespaced bool) bool {
	if a.UID == b.UID {
		return false
	}
	wantedA, wantedB := WantedImport(a), WantedImport(b)
	sameConfig := wantedA.ProviderConfig == wantedB.ProviderConfig
	if a.Namespace != b.Namespace && (!sameConfig || configsAreNamespaced && wantedA.ProviderConfig.Kind == "ProviderConfig") {
		return false
	}
	if x, y := a.Status.Observed, b.Status.Observed; x != nil && y != nil && x.ID != "" && strings.EqualFold(x.ID, y.ID) {
		return true
	}
	return sameConfig && wantedA.NamesSame(wantedB)
}

// holdsObjects reports whether an import can have objects: a foreign finalizer alone does not hold it, and it has not
// removed them because it may no longer use its provider configuration. This does not wait for its status, which may
// never be written.
func holdsObjects(imp *fleetv1alpha1.ClusterImport) bool {
	if !imp.DeletionTimestamp.IsZero() && !slices.Contains(imp.Finalizers, fleetv1alpha1.ImportFinalizer) {
		return false
	}
	c := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionPreflight)
	return c == nil || c.Reason != fleetv1alpha1.ReasonProviderConfigNotAllowed
}

func isOlder(a, b *fleetv1alpha1.ClusterImport) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
