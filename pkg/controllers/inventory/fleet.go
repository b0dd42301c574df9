// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet is what this package reads of the clusters that are enrolled. connection.Provider implements it.
type Fleet interface {
	// List returns a snapshot of every enrolled cluster, connected or not.
	List() []connection.Cluster

	// Lookup returns a snapshot of one enrolled cluster.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// Subscribe calls a function that must not block with the name of a cluster whenever its snapshot changed, or it
	// joined or left the fleet.
	Subscribe(changed func(name mcr.ClusterName))
}

// Source says which objects of one source are enrolled. connection.Source implements it.
type Source interface {
	// Name is the first part of the names of this source's clusters.
	Name() string

	// Describe returns the enrolment of an object, or nil if the object does not exist or is not enrolled. It answers
	// from a filled cache, or not at all.
	Describe(ctx context.Context, key types.NamespacedName) (*connection.Enrolment, error)
}
