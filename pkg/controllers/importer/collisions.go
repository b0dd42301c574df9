// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
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
		{corev1.SchemeGroupVersion.WithKind("Secret"), ownership.KubeconfigName(p.Import)},
	} {
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(taken.gvk)
		err := r.live.Get(ctx, client.ObjectKey{Namespace: p.Import.Namespace, Name: taken.name}, there)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot get %s %q: %w", taken.gvk.Kind, taken.name, err)
		}
		if err == nil && !ownership.MarkedBy(there, p.Wanted) {
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
	other, found := ownership.ImportedBefore(p.Import, all.Items, namespaced, p.ConfigAllows)
	if !found {
		return nil
	}
	which := "in another namespace"
	if other.Namespace == p.Import.Namespace {
		which = fmt.Sprintf("%q", other.Name)
	}
	p.RequeueSoon(scope.Retry)
	return scope.Stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice, "The ClusterImport %s imports the same cluster and is older", which)
}
