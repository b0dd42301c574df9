// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet is this package's view of the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// List returns a snapshot of every enrolled cluster, connected or not.
	List() []connection.Cluster

	// Lookup returns a snapshot of one enrolled cluster.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// MayLeave reports whether a cluster may have to be offboarded. If it does, it is in the fleet when this turns false.
	MayLeave(name mcr.ClusterName) bool

	// Subscribe calls a function that must not block with the name of a cluster whenever its snapshot changed, or it
	// joined or left the fleet.
	Subscribe(changed func(name mcr.ClusterName))
}
