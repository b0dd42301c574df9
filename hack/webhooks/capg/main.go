// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capg serves the webhooks of Cluster API's provider for Google Cloud for the kinds that imports create.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	infrav1 "sigs.k8s.io/cluster-api-provider-gcp/exp/api/v1beta1"
	"sigs.k8s.io/cluster-api-provider-gcp/exp/webhooks"

	"github.com/masthead-dev/masthead/hack/webhooks/serve"
)

func main() {
	serve.Main(
		[]func(*runtime.Scheme) error{infrav1.AddToScheme},
		&webhooks.GCPManagedCluster{}, &webhooks.GCPManagedControlPlane{}, &webhooks.GCPManagedMachinePool{},
	)
}
