// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capa serves the webhooks of Cluster API's provider for AWS for the kinds that imports create.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	controlplane "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	pools "sigs.k8s.io/cluster-api-provider-aws/v2/exp/webhooks"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"

	"github.com/masthead-dev/masthead/hack/webhooks/serve"
)

func main() {
	serve.Main(
		[]func(*runtime.Scheme) error{infrav1.AddToScheme, ekscontrolplanev1.AddToScheme, expinfrav1.AddToScheme},
		&controlplane.AWSManagedControlPlane{}, &pools.AWSManagedMachinePool{}, &webhooks.AWSClusterRoleIdentity{},
		&webhooks.AWSClusterStaticIdentity{},
	)
}
