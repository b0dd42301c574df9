// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fleet is what the agent needs to know about the enrolled clusters. connection.Provider implements it.
type Fleet interface {
	// Lookup returns the cluster that is enrolled under a name.
	Lookup(name mcr.ClusterName) (connection.Cluster, bool)

	// ByIdentifier returns the cluster that holds an identifier. At most one does.
	ByIdentifier(id string) (connection.Cluster, bool)

	// Classes finds the clusters of a class.
	connection.Classes

	// Subscribe registers a function that is called whenever what is known about a cluster has changed. It must not
	// block.
	Subscribe(fn func(mcr.ClusterName))

	// OnLeave registers what is called when a cluster leaves for good, while it is still connected.
	OnLeave(fn connection.Leaver)
}

// DefinitionReporter is told how the definitions of the published claim kinds fare in the workload clusters. It must not
// block.
type DefinitionReporter interface {
	// DefinitionServed: the definition is in the cluster as it is in the hub.
	DefinitionServed(cluster mcr.ClusterName, crd string)

	// DefinitionRefused: the definition cannot be put into the cluster. The reason is one of the ReasonDefinition
	// constants, the message is for users.
	DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string)

	// DefinitionForgotten: the definition is not offered to the cluster any more, or the cluster is gone.
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
