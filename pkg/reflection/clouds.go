// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// findCloud is the table of clouds. Only entry points look something up in it; a cloud's functions receive what they
// need. So the clouds do not depend on the table.
func findCloud(name Cloud) (cloud, bool) {
	switch name {
	case EKS:
		return eksCloud(), true
	case AKS:
		return aksCloud(), true
	case GKE:
		return gkeCloud(), true
	default:
		return cloud{}, false
	}
}

// Clouds are those from which clusters can be imported.
func Clouds() []Cloud { return []Cloud{EKS, AKS, GKE} }

// ReflectedKinds are the kinds of Cluster API that a reflection of the cloud has, in the order of their creation.
func ReflectedKinds(name Cloud) []schema.GroupVersionKind {
	c, _ := findCloud(name)
	k := c.reflected
	kinds := []schema.GroupVersionKind{k.identity, k.infraCluster, k.controlPlane, k.infraPool, clusterKind, machinePoolKind}
	return slices.DeleteFunc(kinds, schema.GroupVersionKind.Empty)
}

// Kinds are the kinds of managed resources that imports of a cloud use, the cluster before what belongs to it.
func Kinds(name Cloud) []Kind {
	c, _ := findCloud(name)
	return c.kinds
}

// Makes reports whether the import creates objects of this kind, namespace and name. A copy, in another namespace or
// under another name, has the same labels, but is not the import's.
func (i Import) Makes(o *unstructured.Unstructured) bool {
	if o.GetNamespace() != "" && o.GetNamespace() != i.Namespace {
		return false
	}
	c, _ := findCloud(i.Cloud)
	gk := o.GroupVersionKind().GroupKind()
	switch gk {
	case c.reflected.identity.GroupKind():
		return o.GetName() == i.deniedName()
	case c.reflected.infraCluster.GroupKind(), c.reflected.controlPlane.GroupKind(), clusterKind.GroupKind():
		return o.GetName() == i.reflectedName()
	case c.reflected.infraPool.GroupKind(), machinePoolKind.GroupKind():
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
