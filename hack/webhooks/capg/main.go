// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capg asks the admission code of Cluster API's provider for Google about objects.
package main

import (
	infrav1 "sigs.k8s.io/cluster-api-provider-gcp/exp/api/v1beta1"
	"sigs.k8s.io/cluster-api-provider-gcp/exp/webhooks"

	"github.com/masthead-dev/masthead/hack/webhooks/verdict"
)

func main() {
	verdict.Main(map[string]verdict.Kind{
		"GCPManagedCluster": verdict.For(
			func() *infrav1.GCPManagedCluster { return &infrav1.GCPManagedCluster{} }, &webhooks.GCPManagedCluster{}),
		"GCPManagedControlPlane": verdict.For(
			func() *infrav1.GCPManagedControlPlane { return &infrav1.GCPManagedControlPlane{} }, &webhooks.GCPManagedControlPlane{}),
		"GCPManagedMachinePool": verdict.For(
			func() *infrav1.GCPManagedMachinePool { return &infrav1.GCPManagedMachinePool{} }, &webhooks.GCPManagedMachinePool{}),
	})
}
