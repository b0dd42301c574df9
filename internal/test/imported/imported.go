// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imported provides tests with the smallest objects of each kind that an import creates and that the admission
// policies of the importer accept: managed resources, the objects of Cluster API that reflect a cluster, and the
// identities which its providers refuse.
package imported

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels and annotations of the objects.
const (
	UIDLabel       = "fleet.masthead.dev/import-uid"
	NameLabel      = "fleet.masthead.dev/import-name"
	NamespaceLabel = "fleet.masthead.dev/import-namespace"

	ExternalNameAnnotation = "crossplane.io/external-name"
	ManagedByAnnotation    = "cluster.x-k8s.io/managed-by"
	PausedAnnotation       = "cluster.x-k8s.io/paused"
)

// UID is the UID of the import that all objects of this package belong to.
const UID = "8d3c6f0e-3c5f-4a0e-9b52-0d7a6f6b1a01"

// ClusterName is the name of the imported cluster, in the cloud and in the hub.
const ClusterName = "shop"

// IsNamespaced reports whether objects of a kind are in a namespace: those of Cluster API are, except AWS's identities;
// of the managed resources, those of the modern groups are.
func IsNamespaced(kind schema.GroupKind) bool {
	if strings.HasSuffix(kind.Group, ".upbound.io") {
		return strings.Contains(kind.Group, ".m.upbound.io")
	}
	return kind.Kind != "AWSClusterRoleIdentity" && kind.Kind != "AWSClusterStaticIdentity"
}

// Object returns the smallest object of a kind that an import could create. The version is the one that the CRD stores.
func Object(kind schema.GroupKind, version, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(kind.WithVersion(version))
	object.SetName(name)
	if IsNamespaced(kind) {
		object.SetNamespace(namespace)
	}
	object.SetLabels(map[string]string{UIDLabel: UID, NameLabel: ClusterName, NamespaceLabel: namespace})
	if strings.HasSuffix(kind.Group, ".upbound.io") {
		return object, managedResource(object, kind)
	}
	spec, ok := clusterAPISpec(kind.Kind, name, namespace)
	if !ok {
		return nil, fmt.Errorf("an import makes no objects of kind %s", kind)
	}
	object.Object["spec"] = spec
	switch kind.Kind {
	case "Cluster", "AWSClusterRoleIdentity", "AWSClusterStaticIdentity", "AzureClusterIdentity":
	default:
		object.SetAnnotations(map[string]string{ManagedByAnnotation: "crossplane", PausedAnnotation: "true"})
	}
	return object, nil
}

func managedResource(object *unstructured.Unstructured, kind schema.GroupKind) error {
	forProvider, ok := identifiers(strings.Replace(kind.Group, ".m.upbound.io", ".upbound.io", 1), kind.Kind)
	if !ok {
		return fmt.Errorf("an import makes no objects of kind %s", kind)
	}
	spec := map[string]any{"forProvider": forProvider}
	if kind.Kind != "ClusterAuth" {
		object.SetAnnotations(map[string]string{ExternalNameAnnotation: object.GetName()})
		spec["managementPolicies"] = []any{"Observe"}
	}
	if IsNamespaced(kind) {
		spec["providerConfigRef"] = map[string]any{"kind": "ClusterProviderConfig", "name": "default"}
	} else {
		spec["providerConfigRef"] = map[string]any{"name": "default"}
		spec["deletionPolicy"] = "Orphan"
	}
	object.Object["spec"] = spec
	return nil
}

func identifiers(group, kind string) (map[string]any, bool) {
	switch group + "/" + kind {
	case "eks.aws.upbound.io/Cluster", "ec2.aws.upbound.io/VPC", "ec2.aws.upbound.io/Subnet", "ec2.aws.upbound.io/RouteTable":
		return map[string]any{"region": "eu-central-1"}, true
	case "eks.aws.upbound.io/NodeGroup", "eks.aws.upbound.io/FargateProfile", "eks.aws.upbound.io/ClusterAuth":
		return map[string]any{"region": "eu-central-1", "clusterName": ClusterName}, true
	case "containerservice.azure.upbound.io/KubernetesCluster":
		return map[string]any{"resourceGroupName": "shop-group", "location": "westeurope"}, true
	case "containerservice.azure.upbound.io/KubernetesClusterNodePool":
		return map[string]any{"kubernetesClusterId": "/subscriptions/0/resourceGroups/shop-group/providers/" +
			"Microsoft.ContainerService/managedClusters/" + ClusterName}, true
	case "container.gcp.upbound.io/Cluster":
		return map[string]any{"location": "europe-west3"}, true
	case "container.gcp.upbound.io/NodePool":
		return map[string]any{"location": "europe-west3", "cluster": ClusterName}, true
	}
	return nil, false
}

func clusterAPISpec(kind, name, namespace string) (map[string]any, bool) {
	switch kind {
	case "Cluster":
		return map[string]any{
			"controlPlaneRef": map[string]any{
				"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "AWSManagedControlPlane", "name": name,
			},
			"infrastructureRef": map[string]any{
				"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSManagedCluster", "name": name,
			},
		}, true
	case "MachinePool":
		return map[string]any{
			"clusterName": ClusterName,
			"template": map[string]any{"spec": map[string]any{
				"clusterName": ClusterName,
				"bootstrap":   map[string]any{"dataSecretName": ""},
				"infrastructureRef": map[string]any{
					"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AWSManagedMachinePool", "name": name,
				},
			}},
		}, true
	case "AWSManagedCluster", "AzureManagedCluster", "GCPManagedMachinePool":
		return map[string]any{}, true
	case "AWSManagedMachinePool":
		return map[string]any{"eksNodegroupName": name}, true
	case "AWSManagedControlPlane":
		return map[string]any{
			"eksClusterName": ClusterName, "region": "eu-central-1",
			"identityRef": map[string]any{"kind": "AWSClusterStaticIdentity", "name": "refused"},
		}, true
	case "AzureManagedControlPlane":
		return map[string]any{
			"location": "westeurope", "resourceGroupName": "shop-group", "subscriptionID": "0", "version": "v1.31.2",
			"identityRef": map[string]any{"kind": "AzureClusterIdentity", "name": "refused"},
		}, true
	case "AzureManagedMachinePool":
		return map[string]any{"mode": "System", "sku": "Standard_D2s_v3"}, true
	case "GCPManagedCluster":
		return map[string]any{
			"project": "shop-project", "region": "europe-west3",
			"credentialsRef": map[string]any{"name": "refused", "namespace": namespace},
		}, true
	case "GCPManagedControlPlane":
		return map[string]any{"location": "europe-west3", "project": "shop-project", "clusterName": ClusterName}, true
	case "AWSClusterRoleIdentity":
		return map[string]any{
			"roleARN":           "arn:aws:iam::000000000000:role/refused",
			"sourceIdentityRef": map[string]any{"kind": "AWSClusterStaticIdentity", "name": "refused"},
		}, true
	case "AWSClusterStaticIdentity":
		return map[string]any{"secretRef": name}, true
	case "AzureClusterIdentity":
		return map[string]any{
			"type": "ServicePrincipal", "tenantID": "refused", "clientID": "refused",
			"clientSecret": map[string]any{"name": name, "namespace": namespace},
		}, true
	}
	return nil, false
}
