// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
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

// reflectedKinds are the kinds of one Cluster API provider. A provider without kinds of identities refers to Secrets.
type reflectedKinds struct {
	identity, infraCluster, controlPlane, infraPool schema.GroupKind
}

// infrastructure is a kind of the group in which Cluster API's providers have theirs.
func infrastructure(kind string) schema.GroupKind {
	return schema.GroupKind{Group: groupInfrastructure, Kind: kind}
}
