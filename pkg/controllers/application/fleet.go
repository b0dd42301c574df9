// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet knows the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// Lookup returns the cluster enrolled under a name.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// Classes finds the clusters of a class.
	connection.Classes

	// List returns every enrolled cluster.
	List() []connection.Cluster

	// Subscribe registers a function that is called whenever a cluster changes. It must not block.
	Subscribe(fn func(mcr.ClusterName))

	// OnOffboard registers a function that is called when a cluster is un-enrolled, while it is still connected.
	OnOffboard(fn connection.OffboardFunc)
}
