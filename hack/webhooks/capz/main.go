// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Program capz runs the webhooks and the reconcilers of Cluster API's provider for Azure for the kinds that imports
// create. The webhooks are internal to their module, so the path of this one is below it.
package main

import (
	"context"
	"fmt"
	"strings"

	containerservice20210501 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20210501"
	containerservice20230201 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20230201"
	containerservice20230315 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20230315preview"
	containerservice20231001 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20231001"
	containerservice20231102 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20231102preview"
	containerservice20240402 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20240402preview"
	containerservice20240901 "github.com/Azure/azure-service-operator/v2/api/containerservice/v1api20240901"
	kubernetesconfiguration "github.com/Azure/azure-service-operator/v2/api/kubernetesconfiguration/v1api20230501"
	network20201101 "github.com/Azure/azure-service-operator/v2/api/network/v1api20201101"
	network20220701 "github.com/Azure/azure-service-operator/v2/api/network/v1api20220701"
	resources "github.com/Azure/azure-service-operator/v2/api/resources/v1api20200601"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	infrav1 "sigs.k8s.io/cluster-api-provider-azure/api/v1beta1"
	"sigs.k8s.io/cluster-api-provider-azure/azure"
	"sigs.k8s.io/cluster-api-provider-azure/controllers"
	"sigs.k8s.io/cluster-api-provider-azure/internal/webhooks"
	"sigs.k8s.io/cluster-api-provider-azure/util/reconciler"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/hack/webhooks/serve"
)

func main() {
	serve.Main(
		[]func(*runtime.Scheme) error{
			clientgoscheme.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme,
			resources.AddToScheme, network20201101.AddToScheme, network20220701.AddToScheme, kubernetesconfiguration.AddToScheme,
			containerservice20210501.AddToScheme, containerservice20230201.AddToScheme, containerservice20230315.AddToScheme,
			containerservice20231001.AddToScheme, containerservice20231102.AddToScheme, containerservice20240402.AddToScheme,
			containerservice20240901.AddToScheme,
		}, reconcilers,
		&webhooks.AzureManagedClusterWebhook{}, &webhooks.AzureManagedControlPlaneWebhook{}, &webhooks.AzureManagedMachinePoolWebhook{},
		&webhooks.AzureClusterIdentityWebhook{},
	)
}

func reconcilers(mgr ctrl.Manager, record func(string)) (map[string]reconcile.Reconciler, error) {
	c, cache := withOperator(mgr.GetClient(), record), azure.NewCredentialCache()
	events, timeouts := mgr.GetEventRecorderFor("capz"), reconciler.Timeouts{}
	controlPlane := &controllers.AzureManagedControlPlaneReconciler{Client: c, Recorder: events, CredentialCache: cache}
	// It completes the reconciler.
	if err := controlPlane.SetupWithManager(context.Background(), mgr, controllers.Options{}); err != nil {
		return nil, fmt.Errorf("cannot set up the reconciler of AzureManagedControlPlane: %w", err)
	}
	return map[string]reconcile.Reconciler{
		"AzureManagedCluster":      &controllers.AzureManagedClusterReconciler{Client: c, Recorder: events},
		"AzureManagedControlPlane": controlPlane,
		"AzureManagedMachinePool":  controllers.NewAzureManagedMachinePoolReconciler(c, events, timeouts, "", cache),
		"ASOSecret":                &controllers.ASOSecretReconciler{Client: c, Recorder: events, CredentialCache: cache},
	}, nil
}

// withOperator stands for the API of the Azure Service Operator, which changes the cloud for CAPZ: what is written to
// it counts as a request to the cloud.
func withOperator(hub client.Client, record func(string)) client.Client {
	operator := fake.NewClientBuilder().WithScheme(hub.Scheme()).Build()
	route := func(verb string, object runtime.Object) client.Client {
		gvk, err := hub.GroupVersionKindFor(object)
		if err != nil || !strings.HasSuffix(gvk.Group, ".azure.com") {
			return hub
		}
		if verb != "" {
			record(verb + " " + gvk.Kind)
		}
		return operator
	}
	return interceptor.NewClient(hub.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return route("", o).Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return route("", list).List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, _ client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return route("CREATE", o).Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, _ client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return route("PATCH", o).Patch(ctx, o, p, opts...)
		},
		Delete: func(ctx context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return route("DELETE", o).Delete(ctx, o, opts...)
		},
	})
}
