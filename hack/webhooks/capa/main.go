// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capa runs the webhooks and the reconcilers of Cluster API's provider for AWS for the kinds that imports
// create.
package main

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
	"sigs.k8s.io/cluster-api-provider-aws/v2/controllers"
	ekscontrolplanev1 "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/api/v1beta2"
	ekscontrollers "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/controllers"
	controlplane "sigs.k8s.io/cluster-api-provider-aws/v2/controlplane/eks/webhooks"
	expinfrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/exp/api/v1beta2"
	expcontrollers "sigs.k8s.io/cluster-api-provider-aws/v2/exp/controllers"
	pools "sigs.k8s.io/cluster-api-provider-aws/v2/exp/webhooks"
	"sigs.k8s.io/cluster-api-provider-aws/v2/webhooks"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/hack/webhooks/serve"
)

func main() {
	serve.Main(
		[]func(*runtime.Scheme) error{
			clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme, ekscontrolplanev1.AddToScheme, expinfrav1.AddToScheme,
		}, reconcilers,
		&controlplane.AWSManagedControlPlane{}, &pools.AWSManagedMachinePool{}, &webhooks.AWSClusterRoleIdentity{},
		&webhooks.AWSClusterStaticIdentity{},
	)
}

func reconcilers(mgr ctrl.Manager, _ func(string)) (map[string]reconcile.Reconciler, error) {
	const wait, maxWait = time.Minute, 30 * time.Minute
	return map[string]reconcile.Reconciler{
		"AWSManagedCluster": &controllers.AWSManagedClusterReconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorderFor("awsmanagedcluster-controller"),
		},
		"AWSManagedControlPlane": &ekscontrollers.AWSManagedControlPlaneReconciler{
			Client: mgr.GetClient(), WaitInfraPeriod: wait, MaxWaitActiveUpdateDelete: maxWait,
		},
		"AWSManagedMachinePool": &expcontrollers.AWSManagedMachinePoolReconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorderFor("awsmanagedmachinepool-reconciler"), MaxWaitActiveUpdateDelete: maxWait,
		},
	}, nil
}
