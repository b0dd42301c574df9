// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet is the agent's view of the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// Lookup returns the cluster enrolled under a name.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// ByIdentifier returns the cluster that holds an identifier. At most one does.
	ByIdentifier(id string) (connection.Cluster, bool)

	// Classes finds the clusters of a class.
	connection.Classes

	// Subscribe registers a function to call when what is known about a cluster changes. It must not block.
	Subscribe(fn func(mcr.ClusterName))

	// OnOffboard registers a function to call when a cluster leaves for good, while it is still connected.
	OnOffboard(fn connection.OffboardFunc)
}
