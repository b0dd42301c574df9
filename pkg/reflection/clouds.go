// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// clouds are those from which clusters can be imported. Only entry points look something up among them; a cloud's
// functions receive what they need. So the clouds do not depend on the table.
var clouds = []cloud{eksCloud(), aksCloud(), gkeCloud()}

// findCloud is empty for an unknown name.
func findCloud(name Cloud) cloud {
	for _, c := range clouds {
		if c.name == name {
			return c
		}
	}
	return cloud{}
}

// FindCluster sets the cloud of the cluster that a spec names, and what it says of the cluster there. It reports
// whether the kubeconfig takes what the cloud's provider publishes.
func FindCluster(i *Import, s *fleetv1alpha1.ClusterImportSpec) (published bool) {
	for _, c := range clouds {
		if c.find(i, s) {
			i.Cloud = c.name
			return slices.Contains(c.published, s.KubeconfigSource())
		}
	}
	return false
}

// Clouds are those from which clusters can be imported.
func Clouds() []Cloud {
	names := make([]Cloud, len(clouds))
	for i, c := range clouds {
		names[i] = c.name
	}
	return names
}

// ReflectedKinds are the kinds of Cluster API that a reflection of the cloud has, in the order of their creation.
func ReflectedKinds(name Cloud) []schema.GroupKind {
	return append(ProviderKinds(name), CoreKinds()...)
}

// ProviderKinds are those of them that the cloud's provider of Cluster API has.
func ProviderKinds(name Cloud) []schema.GroupKind {
	k := findCloud(name).reflected
	kinds := []schema.GroupKind{k.identity, k.infraCluster, k.controlPlane, k.infraPool}
	return slices.DeleteFunc(kinds, schema.GroupKind.Empty)
}

// PlainKind is one of them whose spec may be empty.
func PlainKind(name Cloud) schema.GroupKind { return findCloud(name).plain }

// CoreKinds are those of them that all clouds share.
func CoreKinds() []schema.GroupKind {
	return []schema.GroupKind{clusterKind, machinePoolKind}
}

// PlaceField is the field of forProvider that names the place of a cloud's cluster.
func PlaceField(name Cloud) string { return findCloud(name).placeField }

// IsCluster reports whether a managed resource is a cluster.
func IsCluster(mr *unstructured.Unstructured) bool {
	return slices.ContainsFunc(clouds, func(c cloud) bool { return c.kinds[0].Is(mr.GroupVersionKind().GroupKind()) })
}

// WritesNothing reports whether the controller of a managed resource ignores managementPolicies, and writes nothing to
// the cloud under any.
func WritesNothing(mr *unstructured.Unstructured) bool {
	return slices.ContainsFunc(clouds, func(c cloud) bool { return c.writesNothing.Is(mr.GroupVersionKind().GroupKind()) })
}

// RemovalAnnotations are those without which a webhook of a provider refuses to delete a reflected object.
func RemovalAnnotations(o *unstructured.Unstructured) map[string]string {
	for _, c := range clouds {
		if c.reflected.infraPool == o.GroupVersionKind().GroupKind() {
			return c.removal
		}
	}
	return nil
}

// Names reports whether a managed resource of the cluster's kind has the name of the import's cluster in the cloud.
func (i Import) Names(mr metav1.Object) bool {
	return findCloud(i.Cloud).same(cmp.Or(mr.GetAnnotations()[ExternalNameAnnotation], mr.GetName()), i.ClusterName)
}

// NamesSame reports whether two imports name the same cluster, if their providers see the same account.
func (i Import) NamesSame(other Import) bool {
	c := findCloud(i.Cloud)
	return i.Cloud == other.Cloud && c.same(i.Place, other.Place) && c.same(i.ClusterName, other.ClusterName)
}

// IsAt reports whether a managed resource of the cluster's kind is for the place of the import, or names none.
func (i Import) IsAt(mr *unstructured.Unstructured) bool {
	place, _, _ := unstructured.NestedString(mr.Object, "spec", "forProvider", PlaceField(i.Cloud))
	return place == "" || strings.EqualFold(place, i.Place)
}

// ObservedID is the cluster ID that a managed resource of the cluster's kind reports.
func (i Import) ObservedID(mr *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(mr.Object, "status", "atProvider", findCloud(i.Cloud).idField)
	return id
}

// Kinds are the kinds of managed resources that imports of a cloud create, the cluster before what belongs to it.
func Kinds(name Cloud) []Kind { return findCloud(name).kinds }

// Makes reports whether the import creates objects of this kind, namespace and name. A copy, in another namespace or
// under another name, has the same labels, but is not the import's.
func (i Import) Makes(o *unstructured.Unstructured) bool {
	if o.GetNamespace() != "" && o.GetNamespace() != i.Namespace {
		return false
	}
	c := findCloud(i.Cloud)
	gk := o.GroupVersionKind().GroupKind()
	switch gk {
	case c.reflected.identity:
		return o.GetName() == i.deniedName()
	case c.reflected.infraCluster, c.reflected.controlPlane, clusterKind:
		return o.GetName() == i.reflectedName()
	case c.reflected.infraPool, machinePoolKind:
		// The name holds the pool's, which the MachinePool does not say.
		return o.GetLabels()[clusterv1.ClusterNameLabel] == i.reflectedName()
	}
	kind := slices.IndexFunc(c.kinds, func(k Kind) bool { return k.Is(gk) })
	if kind < 0 {
		return false
	}
	// A ClusterAuth has no external name, or one that its provider gave it.
	ids := []string{o.GetAnnotations()[ExternalNameAnnotation], i.ClusterName}
	return slices.ContainsFunc(ids, func(id string) bool {
		return o.GetName() == ManagedName(i, c.kinds[kind], o.GetNamespace() != "", id)
	})
}
