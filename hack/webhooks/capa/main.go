// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capa asks the admission code of Cluster API's provider for AWS about objects.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	controlplane "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	pools "sigs.k8s.io/cluster-api-provider-aws/v2/exp/webhooks"

	"github.com/masthead-dev/masthead/hack/webhooks/verdict"
)

func main() {
	verdict.Main(map[string]verdict.Kind{
		"AWSManagedControlPlane": verdict.For(
			func() runtime.Object { return &ekscontrolplanev1.AWSManagedControlPlane{} }, &controlplane.AWSManagedControlPlane{}),
		"AWSManagedMachinePool": verdict.For(
			func() runtime.Object { return &expinfrav1.AWSManagedMachinePool{} }, &pools.AWSManagedMachinePool{}),
		"AWSFargateProfile": verdict.For(
			func() runtime.Object { return &expinfrav1.AWSFargateProfile{} }, &pools.AWSFargateProfile{}),
	})
}
