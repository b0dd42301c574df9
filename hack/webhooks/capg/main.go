// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capg runs the webhooks and the reconcilers of Cluster API's provider for Google Cloud for the kinds that
// imports create.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	infrav1 "sigs.k8s.io/cluster-api-provider-gcp/exp/api/v1beta1"
	"sigs.k8s.io/cluster-api-provider-gcp/exp/controllers"
	"sigs.k8s.io/cluster-api-provider-gcp/exp/webhooks"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/hack/webhooks/serve"
)

func main() {
	serve.Main(
		[]func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme}, reconcilers,
		&webhooks.GCPManagedCluster{}, &webhooks.GCPManagedControlPlane{}, &webhooks.GCPManagedMachinePool{},
	)
}

func reconcilers(mgr ctrl.Manager, _ func(string)) (map[string]reconcile.Reconciler, error) {
	return map[string]reconcile.Reconciler{
		"GCPManagedCluster":      &controllers.GCPManagedClusterReconciler{Client: mgr.GetClient()},
		"GCPManagedControlPlane": &controllers.GCPManagedControlPlaneReconciler{Client: mgr.GetClient()},
		"GCPManagedMachinePool":  &controllers.GCPManagedMachinePoolReconciler{Client: mgr.GetClient()},
	}, nil
}
