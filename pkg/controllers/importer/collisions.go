// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// foreignMembers finds what names the cluster and makes Cluster API core write to its Nodes. The policies refuse it as
// soon as the cluster is imported; it may have been there before, or have come while they were not enforced. While it
// is there, core gets no credentials. So it is looked for also while nothing else is done because they are not.
func (r *Reconciler) foreignMembers(ctx context.Context, p *pass) error {
	for _, kind := range []string{"MachinePool", "MachineDeployment", "MachineSet", "Machine"} {
		gvk := clusterv1.GroupVersion.WithKind(kind)
		if _, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); meta.IsNoMatchError(err) {
			continue
		}
		list := unstructuredList(gvk)
		if err := r.live.List(ctx, list, client.InNamespace(p.imp.Namespace)); err != nil {
			return fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			if named, _, _ := unstructured.NestedString(o.Object, "spec", "clusterName"); named != p.imp.Name || kind == "MachinePool" && p.isOurs(o) {
				continue
			}
			if _, err := r.removeKubeconfig(ctx, p); err != nil {
				return err
			}
			p.requeueSoon(retry)
			return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonNameTaken,
				"The %s %q names this cluster, and this import did not make it: Cluster API core would write to the cluster's Nodes", kind, o.GetName())
		}
	}
	return nil
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

// managedByCrossplane finds a managed resource of somebody else that stands for the same cluster and may do more than
// observe. It is asked only until the import has its own: the list of a kind is that of the whole hub.
func (r *Reconciler) managedByCrossplane(ctx context.Context, p *pass) error {
	kind := reflection.Kinds(p.wanted.Cloud)[0]
	gvk, _, found := p.served.Managed(kind)
	if !found {
		return nil
	}
	ours := unstructuredList(gvk)
	if err := r.owned.List(ctx, ours, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(p.imp.UID)}); err != nil {
		return fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
	}
	if len(r.own(p, ours.Items)) > 0 {
		return nil
	}
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		mapping, err := r.mapper.RESTMapping(gk)
		if err != nil {
			continue // It is not served.
		}
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := r.live.List(ctx, all); err != nil {
			if apierrors.IsForbidden(err) {
				continue // Only the group that is used was asked for in the preflight.
			}
			return fmt.Errorf("cannot list %s: %w", gk, err)
		}
		for i := range all.Items {
			if err := r.managedElsewhere(ctx, p, mapping.GroupVersionKind, &all.Items[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reconciler) managedElsewhere(ctx context.Context, p *pass, gvk schema.GroupVersionKind, m *metav1.PartialObjectMetadata) error {
	name := m.Annotations[reflection.ExternalNameAnnotation]
	if name == "" {
		name = m.Name
	}
	if name != p.wanted.ClusterName || m.Labels[fleetv1alpha1.ImportUIDLabel] != "" {
		return nil
	}
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(gvk)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(m), other); err != nil {
		return client.IgnoreNotFound(err) //nolint:wrapcheck // It was there a moment ago.
	}
	if slices.Equal(policiesOf(other), []string{"Observe"}) || !samePlace(other, p.wanted) {
		return nil
	}
	return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByCrossplane,
		"Another %s of Crossplane stands for this cluster and may change it", gvk.Kind)
}

// samePlace says whether a managed resource is for the place of the import, or does not say for which.
func samePlace(m *unstructured.Unstructured, w reflection.Import) bool {
	for field, want := range map[string]string{"region": w.Region, "resourceGroupName": w.ResourceGroupName, "location": w.Location} {
		got, _, err := unstructured.NestedString(m.Object, "spec", "forProvider", field)
		if want != "" && err == nil && got != "" && got != want {
			return false
		}
	}
	return true
}

func unstructuredList(gvk schema.GroupVersionKind) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(gvk)
	return l
}
