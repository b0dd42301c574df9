// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capz serves the webhooks of Cluster API's provider for Azure for the kinds that imports create. They are
// internal to their module, so the path of this one is below it.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	infrav1 "sigs.k8s.io/cluster-api-provider-azure/api/v1beta1"
	"sigs.k8s.io/cluster-api-provider-azure/internal/webhooks"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/masthead-dev/masthead/hack/webhooks/serve"
)

func main() {
	serve.Main(
		[]func(*runtime.Scheme) error{clusterv1.AddToScheme, infrav1.AddToScheme},
		&webhooks.AzureManagedClusterWebhook{}, &webhooks.AzureManagedControlPlaneWebhook{}, &webhooks.AzureManagedMachinePoolWebhook{},
		&webhooks.AzureClusterIdentityWebhook{},
	)
}
