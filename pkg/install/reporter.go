// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Reporter receives the state of definitions in the workload clusters. It must not block.
type Reporter interface {
	// DefinitionServed: the cluster has the wanted definition, and the objects that belong to it.
	DefinitionServed(cluster mcr.ClusterName, crd string)

	// DefinitionRefused: the cluster does not. The reason is one of the installer's constants, the message is for users.
	DefinitionRefused(cluster mcr.ClusterName, crd, reason, message string)

	// DefinitionForgotten: the definition is no longer meant for the cluster, or the cluster is gone.
	DefinitionForgotten(cluster mcr.ClusterName, crd string)
}

// NopReporter discards all reports.
type NopReporter struct{}

// DefinitionServed implements Reporter.
func (NopReporter) DefinitionServed(mcr.ClusterName, string) {}

// DefinitionRefused implements Reporter.
func (NopReporter) DefinitionRefused(mcr.ClusterName, string, string, string) {}

// DefinitionForgotten implements Reporter.
func (NopReporter) DefinitionForgotten(mcr.ClusterName, string) {}
