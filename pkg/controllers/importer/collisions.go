// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// collisions checks whether something else has the names that the import needs, or manages the cluster.
func (r *Reconciler) collisions(ctx context.Context, s *scope, hub capabilities, mayWrite bool) error {
	if !mayWrite {
		return nil
	}
	if err := r.importedTwice(ctx, s, hub); err != nil {
		return err
	}
	for _, taken := range []struct {
		gvk  schema.GroupVersionKind
		name string
	}{
		{clusterv1.GroupVersion.WithKind("Cluster"), s.imp.Name},
		{corev1.SchemeGroupVersion.WithKind("Secret"), ownership.KubeconfigName(s.imp)},
	} {
		there := &metav1.PartialObjectMetadata{}
		there.SetGroupVersionKind(taken.gvk)
		err := r.live.Get(ctx, client.ObjectKey{Namespace: s.imp.Namespace, Name: taken.name}, there)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot get %s %q: %w", taken.gvk.Kind, taken.name, err)
		}
		if err == nil && !ownership.MarkedBy(there, s.wanted) {
			return nameTaken(taken.gvk.Kind, taken.name)
		}
	}
	return r.managedByCrossplane(ctx, s, hub)
}

// importedTwice finds an older import of the same cluster. Of one in another namespace, only its existence is reported.
func (r *Reconciler) importedTwice(ctx context.Context, s *scope, hub capabilities) error {
	var all fleetv1alpha1.ClusterImportList
	if err := r.hub.List(ctx, &all); err != nil {
		return fmt.Errorf("cannot list ClusterImports: %w", err)
	}
	_, namespaced, _ := hub.schemas.Managed(reflection.Kinds(s.wanted.Cloud)[0])
	other, found := ownership.ImportedBefore(s.imp, all.Items, namespaced, hub.configAllows)
	if !found {
		return nil
	}
	which := "in another namespace"
	if other.Namespace == s.imp.Namespace {
		which = fmt.Sprintf("%q", other.Name)
	}
	return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice,
		"The ClusterImport %s imports the same cluster and is older", which).RetriedAfter(workload.Retry)
}

// managedByCrossplane finds a foreign managed resource for the same cluster that may do more than observe. It
// runs only until the import has its own: the list of a kind covers the whole hub.
func (r *Reconciler) managedByCrossplane(ctx context.Context, s *scope, hub capabilities) error {
	gvk, _, found := hub.schemas.Managed(reflection.Kinds(s.wanted.Cloud)[0])
	if !found {
		return nil
	}
	ours := unstructuredList(gvk)
	if err := r.owned.List(ctx, ours, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(s.imp.UID)}); err != nil {
		return fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
	}
	if len(r.own(s, ours.Items)) > 0 {
		return nil
	}
	return r.noOtherManages(ctx, s, hub, "")
}

// observedElsewhere checks once more, with the cluster's observed ID, before the cluster is first reflected: a managed
// resource under another provider configuration can stand for it.
func (r *Reconciler) observedElsewhere(ctx context.Context, s *scope, hub capabilities, obs observation) error {
	if !obs.mayWrite {
		return nil
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	switch err := r.owned.Get(ctx, s.key(), cluster); {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("cannot get Cluster %q: %w", s.key(), err)
	}
	return r.noOtherManages(ctx, s, hub, obs.facts.ID)
}

// noOtherManages stops the pass if a foreign managed resource represents the cluster, whose ID may be unknown,
// and may do more than observe.
func (r *Reconciler) noOtherManages(ctx context.Context, s *scope, hub capabilities, id string) error {
	kind := reflection.Kinds(s.wanted.Cloud)[0]
	_, namespaced, _ := hub.schemas.Managed(kind)
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		var served schema.GroupVersionKind
		var alike []client.ObjectKey
		err := r.whereServed(ctx, gk, func(gvk schema.GroupVersionKind) (err error) {
			served = gvk
			alike, err = r.ofThatName(ctx, gvk, s.wanted)
			return err
		})
		if errors.Is(err, errNotServed) || apierrors.IsForbidden(err) {
			continue // The preflight checked the rights for the used group only.
		}
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", gk, err)
		}
		for _, key := range alike {
			other := &unstructured.Unstructured{}
			other.SetGroupVersionKind(served)
			err := r.live.Get(ctx, key, other)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot get %s %q: %w", gk, key, err)
			}
			if ownership.Manages(other, s.wanted, namespaced, id) {
				return stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByCrossplane,
					"Another %s of Crossplane represents this cluster and may change it", gk.Kind).RetriedAfter(workload.Retry)
			}
		}
	}
	return nil
}

// ofThatName lists the managed resources of a kind with the name of a cluster, except those of imports. Only metadata
// is read, a page at a time.
func (h *hubObjects) ofThatName(ctx context.Context, gvk schema.GroupVersionKind, of reflection.Import) ([]client.ObjectKey, error) {
	var found []client.ObjectKey
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(gvk)
		err := h.live.List(ctx, page, &client.ListOptions{Limit: o.Limit, Continue: o.Continue})
		return page, err //nolint:wrapcheck // The caller's caller says what was listed.
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		m, ok := o.(*metav1.PartialObjectMetadata)
		if ok && m.Labels[fleetv1alpha1.ImportUIDLabel] == "" && of.Names(m) {
			found = append(found, client.ObjectKeyFromObject(m))
		}
		return nil
	})
	return found, err //nolint:wrapcheck // The caller says what was listed.
}
