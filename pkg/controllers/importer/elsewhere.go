// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// managedByCrossplane finds a foreign managed resource for the same cluster that may do more than observe. It
// runs only until the import has its own: the list of a kind covers the whole hub.
func (r *Reconciler) managedByCrossplane(ctx context.Context, p *scope.Scope) error {
	gvk, _, found := p.Served.Managed(reflection.Kinds(p.Wanted.Cloud)[0])
	if !found {
		return nil
	}
	ours := unstructuredList(gvk)
	if err := r.owned.List(ctx, ours, client.MatchingLabels{fleetv1alpha1.ImportUIDLabel: string(p.Import.UID)}); err != nil {
		return fmt.Errorf("cannot list %s: %w", gvk.GroupKind(), err)
	}
	if len(r.own(p, ours.Items)) > 0 {
		return nil
	}
	return r.noOtherManages(ctx, p, "")
}

// observedElsewhere checks once more, with the cluster's observed ID, before the cluster is first reflected: a managed
// resource under another provider configuration can stand for it.
func (r *Reconciler) observedElsewhere(ctx context.Context, p *scope.Scope) error {
	if p.Frozen {
		return nil
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	switch err := r.owned.Get(ctx, p.Key(), cluster); {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("cannot get Cluster %q: %w", p.Key(), err)
	}
	return r.noOtherManages(ctx, p, p.Facts.ID)
}

// noOtherManages stops the pass if a foreign managed resource represents the cluster, whose ID may be unknown,
// and may do more than observe.
func (r *Reconciler) noOtherManages(ctx context.Context, p *scope.Scope, id string) error {
	kind := reflection.Kinds(p.Wanted.Cloud)[0]
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		mapping, err := r.mapper.RESTMapping(gk)
		if err != nil {
			continue // It is not served.
		}
		alike, err := r.ofThatName(ctx, mapping.GroupVersionKind, p.Wanted)
		if apierrors.IsForbidden(err) {
			continue // The preflight checked the rights for the used group only.
		}
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", gk, err)
		}
		for _, key := range alike {
			other := &unstructured.Unstructured{}
			other.SetGroupVersionKind(mapping.GroupVersionKind)
			err := r.live.Get(ctx, key, other)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return fmt.Errorf("cannot get %s %q: %w", gk, key, err)
			}
			if manages(other, p, id) {
				p.RequeueSoon(scope.Retry)
				return scope.Stop(fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByCrossplane,
					"Another %s of Crossplane represents this cluster and may change it", gk.Kind)
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
		if ok && m.Labels[fleetv1alpha1.ImportUIDLabel] == "" && hasName(m, of) {
			found = append(found, client.ObjectKeyFromObject(m))
		}
		return nil
	})
	return found, err //nolint:wrapcheck // The caller says what was listed.
}

// externalName is the name of a managed resource in its cloud.
func externalName(m client.Object) string {
	return cmp.Or(m.GetAnnotations()[reflection.ExternalNameAnnotation], m.GetName())
}

// hasName reports whether a managed resource has the name of a cluster. Azure's names have no case.
func hasName(m client.Object, of reflection.Import) bool {
	name := externalName(m)
	return name == of.ClusterName || of.Cloud == reflection.AKS && strings.EqualFold(name, of.ClusterName)
}

// manages reports whether a foreign managed resource, with the cluster's name, represents the cluster and may do
// more than observe. A name means nothing without the account, which comes from the provider configuration: a tenant
// with another configuration could block everybody's import by name. By the observed ID it counts also with another
// configuration, but not in another namespace: with their own configuration, which can lead to their own cloud, a
// tenant can present anybody's ID. See sameCluster.
func manages(other *unstructured.Unstructured, p *scope.Scope, id string) bool {
	if slices.Equal(managementPolicies(other), []string{"Observe"}) || !hasName(other, p.Wanted) {
		return false
	}
	_, namespaced, _ := p.Served.Managed(reflection.Kinds(p.Wanted.Cloud)[0])
	if newConfigKey(other) == configOfImport(p.Wanted, namespaced) {
		return samePlace(other, p.Wanted)
	}
	near := other.GetNamespace() == "" || other.GetNamespace() == p.Import.Namespace
	return near && id != "" && strings.EqualFold(observedID(other), id)
}

// observedID is the cluster ID that a managed resource reports.
func observedID(m *unstructured.Unstructured) string {
	field := "id"
	if reflection.EKSCluster.Is(m.GroupVersionKind().GroupKind()) {
		field = "arn" // The id is the name.
	}
	id, _, _ := unstructured.NestedString(m.Object, "status", "atProvider", field)
	return id
}

// configKey identifies a provider configuration.
type configKey struct {
	// legacy ones are in another API group.
	legacy                bool
	kind, namespace, name string
}

// newConfigKey is the provider configuration that a managed resource uses, with the defaults of Crossplane's providers.
func newConfigKey(m *unstructured.Unstructured) configKey {
	ref, _, _ := unstructured.NestedStringMap(m.Object, "spec", "providerConfigRef")
	c := configKey{kind: "ProviderConfig", name: cmp.Or(ref["name"], "default")}
	if c.legacy = !strings.Contains(m.GroupVersionKind().Group, ".m."); c.legacy {
		return c
	}
	if c.kind = cmp.Or(ref["kind"], "ClusterProviderConfig"); c.kind == "ProviderConfig" {
		c.namespace = m.GetNamespace()
	}
	return c
}

// configOfImport is the provider configuration of an import whose managed resources are namespaced, or not.
func configOfImport(w reflection.Import, namespaced bool) configKey {
	c := configKey{legacy: !namespaced, kind: w.ProviderConfig.Kind, name: w.ProviderConfig.Name}
	if namespaced && c.kind == "ProviderConfig" {
		c.namespace = w.Namespace
	}
	return c
}

// samePlace reports whether a managed resource is for the import's place, or names none.
func samePlace(m *unstructured.Unstructured, w reflection.Import) bool {
	for field, want := range map[string]string{"region": w.Region, "resourceGroupName": w.ResourceGroupName, "location": w.Location} {
		got, _, err := unstructured.NestedString(m.Object, "spec", "forProvider", field)
		if want != "" && err == nil && got != "" && !strings.EqualFold(got, want) {
			return false
		}
	}
	return true
}
