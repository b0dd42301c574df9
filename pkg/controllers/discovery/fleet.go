// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet is what discovery needs to know about the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// Lookup returns the cluster that is enrolled under a name.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// Classes finds the clusters of a class.
	connection.Classes

	// Subscribe registers a function that is called whenever what is known about a cluster has changed. It must not
	// block.
	Subscribe(fn func(mcr.ClusterName))

	// OnLeave registers what is called when a cluster leaves for good, while it is still connected.
	OnLeave(fn connection.Leaver)
}

// DefinitionReporter is told how the definitions of the mirrored kinds fare in the workload clusters. It must not
// block.
type DefinitionReporter interface {
	// DefinitionServed: the cluster shows what the hub has of the kind.
	DefinitionServed(cluster mcr.ClusterName, crd string)

	// DefinitionRefused: the cluster does not show it, or not all of it. The reason is one of this package's constants,
	// the message is for users.
	DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string)

	// DefinitionForgotten: the kind is not shown to the cluster any more, or the cluster is gone.
	DefinitionForgotten(cluster mcr.ClusterName, crd string)
}

// nopReporter is used when nobody wants to know.
type nopReporter struct{}

// DefinitionServed implements DefinitionReporter.
func (nopReporter) DefinitionServed(mcr.ClusterName, string) {}

// DefinitionRefused implements DefinitionReporter.
func (nopReporter) DefinitionRefused(mcr.ClusterName, string, string, string) {}

// DefinitionForgotten implements DefinitionReporter.
func (nopReporter) DefinitionForgotten(mcr.ClusterName, string) {}
