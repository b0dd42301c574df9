// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1 "k8s.io/api/core/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// collisions finds out whether something else has the names that the import needs, or manages the cluster.
func (r *Reconciler) collisions(ctx context.Context, p *pass) error {
	if p.frozen {
		return nil
	}
	if err := r.importedTwice(ctx, p); err != nil {
		return err
	}
	for _, taken := range []struct {
		gvk  schema.GroupVersionKind
		name string
	}{
		{clusterv1.GroupVersion.WithKind("Cluster"), p.imp.Name},
		{corev1.SchemeGroupVersion.WithKind("Secret"), kubeconfigName(p.imp)},
	} {
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(taken.gvk)
		err := r.live.Get(ctx, client.ObjectKey{Namespace: p.imp.Namespace, Name: taken.name}, there)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot get %s %q: %w", taken.gvk.Kind, taken.name, err)
		}
		if err == nil && !p.isOurs(there) {
			return nameTaken(taken.gvk.Kind, taken.name)
		}
	}
	return r.managedByCrossplane(ctx, p)
}

func nameTaken(kind, name string) error {
	return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken, "There is a %s %q that this import did not make; it is left alone", kind, name)
}

// isNameTaken says whether a pass stops because of nameTaken.
func isNameTaken(err error) bool {
	var stopped *stopError
	return errors.As(err, &stopped) && stopped.condition.Reason == fleetv1alpha1.ReasonNameTaken
}

// importedTwice finds an older import of the same cluster. What is said of one in another namespace is only that it is
// there.
func (r *Reconciler) importedTwice(ctx context.Context, p *pass) error {
	var all fleetv1alpha1.ClusterImportList
	if err := r.hub.List(ctx, &all); err != nil {
		return fmt.Errorf("cannot list ClusterImports: %w", err)
	}
	_, namespaced, _ := p.served.Managed(reflection.Kinds(p.wanted.Cloud)[0])
	for i := range all.Items {
		other := &all.Items[i]
		if !sameCluster(p.imp, other, namespaced) || !isOlder(other, p.imp) || isRevoked(other) || !counts(p, other) {
			continue
		}
		which := "in another namespace"
		if other.Namespace == p.imp.Namespace {
			which = fmt.Sprintf("%q", other.Name)
		}
		p.requeueSoon(retry)
		return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice, "The ClusterImport %s imports the same cluster and is older", which)
	}
	return nil
}

// sameCluster says whether two imports are of the same cluster: by the ID that the cloud gives it, or else by what they
// name. Only imports that use one provider configuration are compared: with a configuration of one's own, which can
// lead to a cloud of one's own, the ID of anybody's cluster can be shown, and would keep that cluster from being
// imported. Provider configurations of one name in two namespaces are two, unless the kind is cluster-scoped.
func sameCluster(a, b *fleetv1alpha1.ClusterImport, configsAreNamespaced bool) bool {
	if a.UID == b.UID {
		return false
	}
	configA, configB := wantedImport(a).ProviderConfig, wantedImport(b).ProviderConfig
	if a.Namespace != b.Namespace && (configA != configB || configsAreNamespaced && configA.Kind == "ProviderConfig") {
		return false
	}
	if a.Status.Observed != nil && b.Status.Observed != nil && a.Status.Observed.ID != "" && strings.EqualFold(a.Status.Observed.ID, b.Status.Observed.ID) {
		return true
	}
	return identifiers(a) == identifiers(b)
}

// identifiers are all that names a cluster in the spec.
func identifiers(imp *fleetv1alpha1.ClusterImport) [5]string {
	w := wantedImport(imp)
	return [5]string{string(w.Cloud), w.Region + w.ResourceGroupName + w.Location, w.ClusterName, w.ProviderConfig.Kind, w.ProviderConfig.Name}
}

// counts says whether an import stands for anything: it may use its provider configuration, and is not held by somebody
// else's finalizer alone. What its status says of that is not waited for, since it may never come to be said.
func counts(p *pass, imp *fleetv1alpha1.ClusterImport) bool {
	if !imp.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(imp, fleetv1alpha1.ImportFinalizer) {
		return false
	}
	return imp.Namespace == p.imp.Namespace || p.configAllows == nil || p.configAllows(imp.Namespace)
}

// isRevoked says whether an import may no longer use its provider configuration, and so has taken back what it made.
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

func unstructuredList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk)
	return l
}
