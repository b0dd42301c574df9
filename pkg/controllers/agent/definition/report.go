// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Reporter is told how the definitions of the published claim kinds fare in the workload clusters. It must not
// block.
type Reporter interface {
	// DefinitionServed: the definition is in the cluster as it is in the hub.
	DefinitionServed(cluster mcr.ClusterName, crd string)

	// DefinitionRefused: the definition cannot be put into the cluster. The reason is one of the ReasonDefinition
	// constants, the message is for users.
	DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string)

	// DefinitionForgotten: the definition is not offered to the cluster any more, or the cluster is gone.
	DefinitionForgotten(cluster mcr.ClusterName, crd string)
}

// NopReporter is used when nobody wants to know.
type NopReporter struct{}

// DefinitionServed implements Reporter.
func (NopReporter) DefinitionServed(mcr.ClusterName, string) {}

// DefinitionRefused implements Reporter.
func (NopReporter) DefinitionRefused(mcr.ClusterName, string, string, string) {}

// DefinitionForgotten implements Reporter.
func (NopReporter) DefinitionForgotten(mcr.ClusterName, string) {}
