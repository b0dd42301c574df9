// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// collisions checks whether something else has the names that the import needs, or manages the cluster.
func (r *Reconciler) collisions(ctx context.Context, p *scope.Scope) error {
	if p.Frozen {
		return nil
	}
	if err := r.importedTwice(ctx, p); err != nil {
		return err
	}
	for _, taken := range []struct {
		gvk  schema.GroupVersionKind
		name string
	}{
		{clusterv1.GroupVersion.WithKind("Cluster"), p.Import.Name},
		{corev1.SchemeGroupVersion.WithKind("Secret"), scope.KubeconfigName(p.Import)},
	} {
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(taken.gvk)
		err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Import.Namespace, Name: taken.name}, there)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot get %s %q: %w", taken.gvk.Kind, taken.name, err)
		}
		if err == nil && !p.IsOurs(there) {
			return nameTaken(taken.gvk.Kind, taken.name)
		}
	}
	return r.managedByCrossplane(ctx, p)
}

// importedTwice finds an older import of the same cluster. Of one in another namespace, only its existence is reported.
func (r *Reconciler) importedTwice(ctx context.Context, p *scope.Scope) error {
	var all fleetv1alpha1.ClusterImportList
	if err := r.hub.List(ctx, &all); err != nil {
		return fmt.Errorf("cannot list ClusterImports: %w", err)
	}
	_, namespaced, _ := p.Served.Managed(reflection.Kinds(p.Wanted.Cloud)[0])
	for i := range all.Items {
		other := &all.Items[i]
		if !sameCluster(p.Import, other, namespaced) || !isOlder(other, p.Import) || isRevoked(other) || !counts(p, other) {
			continue
		}
		which := "in another namespace"
		if other.Namespace == p.Import.Namespace {
			which = fmt.Sprintf("%q", other.Name)
		}
		p.RequeueSoon(scope.Retry)
		return scope.Stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice, "The ClusterImport %s imports the same cluster and is older", which)
	}
	return nil
}

// sameCluster reports whether two imports are of the same cluster: by the cloud's ID, or else by what they name. Only
// imports with the same provider configuration are compared: with their own configuration, which can lead to their own
// cloud, a tenant could present anybody's cluster ID and block its import. Provider configurations of one name in two
// namespaces are two, unless the kind is cluster-scoped.
func sameCluster(a, b *fleetv1alpha1.ClusterImport, configsAreNamespaced bool) bool {
	if a.UID == b.UID {
		return false
	}
	configA, configB := scope.WantedImport(a).ProviderConfig, scope.WantedImport(b).ProviderConfig
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
	w := scope.WantedImport(imp)
	if w.Cloud == reflection.AKS { // Azure's names have no case.
		w.ResourceGroupName, w.ClusterName = strings.ToLower(w.ResourceGroupName), strings.ToLower(w.ClusterName)
	}
	return [5]string{string(w.Cloud), w.Region + w.ResourceGroupName + w.Location, w.ClusterName, w.ProviderConfig.Kind, w.ProviderConfig.Name}
}

// counts reports whether an import is relevant: it may use its provider configuration, and is not held by a foreign
// finalizer alone. This does not wait for its status, which may never be written.
func counts(p *scope.Scope, imp *fleetv1alpha1.ClusterImport) bool {
	if !imp.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(imp, fleetv1alpha1.ImportFinalizer) {
		return false
	}
	return imp.Namespace == p.Import.Namespace || p.ConfigAllows == nil || p.ConfigAllows(imp.Namespace)
}

// isRevoked reports whether an import may no longer use its provider configuration, and so has removed what it created.
func isRevoked(imp *fleetv1alpha1.ClusterImport) bool {
	c := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionPreflight)
	return c != nil && c.Reason == fleetv1alpha1.ReasonProviderConfigNotAllowed
}

func isOlder(a, b *fleetv1alpha1.ClusterImport) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.UID < b.UID
}
