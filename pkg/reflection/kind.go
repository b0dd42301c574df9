// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
)

// Kind is a kind of managed resource, whichever of its two groups the hub serves.
type Kind struct {
	// Family is the group without the provider's suffix, e.g. "eks".
	Family string
	// Provider is "aws", "azure" or "gcp".
	Provider string
	Kind     string
}

// Legacy is the kind in its cluster-scoped group.
func (k Kind) Legacy() schema.GroupKind {
	return schema.GroupKind{Group: k.Family + "." + k.Provider + ".upbound.io", Kind: k.Kind}
}

// Namespaced is the kind in its namespaced group, which Crossplane has since version 2.
func (k Kind) Namespaced() schema.GroupKind {
	return schema.GroupKind{Group: k.Family + "." + k.Provider + ".m.upbound.io", Kind: k.Kind}
}

// Is reports whether an object is of the kind, in either group.
func (k Kind) Is(gk schema.GroupKind) bool { return gk == k.Legacy() || gk == k.Namespaced() }

func (k Kind) String() string { return k.Legacy().String() }

// Served reports in which group and version the hub serves a kind.
type Served interface {
	Managed(kind Kind) (gvk schema.GroupVersionKind, namespaced, found bool)
}

// ServedVersions are the versions that the hub serves of each kind, e.g. out of its CRDs. It prefers the namespaced
// group, whose Secrets stay in the namespace of the import, and v1beta1, which all providers serve.
type ServedVersions map[schema.GroupKind][]string

// Managed implements Served.
func (s ServedVersions) Managed(kind Kind) (schema.GroupVersionKind, bool, bool) {
	for _, gk := range []schema.GroupKind{kind.Namespaced(), kind.Legacy()} {
		versions := s[gk]
		if len(versions) == 0 {
			continue
		}
		version := "v1beta1"
		if !slices.Contains(versions, version) {
			version = slices.Min(versions)
		}
		return gk.WithVersion(version), gk == kind.Namespaced(), true
	}
	return schema.GroupVersionKind{}, false, false
}

// reflectedKinds are the kinds of one Cluster API provider. A provider without kinds of identities refers to Secrets.
type reflectedKinds struct {
	identity, infraCluster, controlPlane, infraPool schema.GroupVersionKind
}

// infrastructure is a kind of the group in which Cluster API's providers have theirs.
func infrastructure(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupInfrastructure, Version: version, Kind: kind}
}
