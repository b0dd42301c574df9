// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of managed resources, with their legacy groups.
const (
	kindEKSCluster     = "eks.aws.upbound.io/Cluster"
	kindEKSNodeGroup   = "eks.aws.upbound.io/NodeGroup"
	kindEKSClusterAuth = "eks.aws.upbound.io/ClusterAuth"
	kindEKSFargate     = "eks.aws.upbound.io/FargateProfile"
	kindVPC            = "ec2.aws.upbound.io/VPC"
	kindSubnet         = "ec2.aws.upbound.io/Subnet"
	kindRouteTable     = "ec2.aws.upbound.io/RouteTable"
	kindAKSCluster     = "containerservice.azure.upbound.io/KubernetesCluster"
	kindAKSNodePool    = "containerservice.azure.upbound.io/KubernetesClusterNodePool"
	kindGKECluster     = "container.gcp.upbound.io/Cluster"
	kindGKENodePool    = "container.gcp.upbound.io/NodePool"
)

const externalNameAnnotation = "crossplane.io/external-name"

// kinds are all kinds, in the legacy groups.
func kinds() []string {
	return []string{
		kindEKSCluster, kindEKSNodeGroup, kindEKSClusterAuth, kindEKSFargate, kindVPC, kindSubnet, kindRouteTable,
		kindAKSCluster, kindAKSNodePool, kindGKECluster, kindGKENodePool,
	}
}

// isModern reports whether a group is one of namespaced managed resources.
func isModern(group string) bool { return strings.Contains(group, ".m.upbound.io") }

func legacyKind(kind schema.GroupKind) string {
	return strings.Replace(kind.Group, ".m.upbound.io", ".upbound.io", 1) + "/" + kind.Kind
}

// groupKinds returns a kind in its legacy and in its modern group.
func groupKinds(kind string) []schema.GroupKind {
	group, name, _ := strings.Cut(kind, "/")
	return []schema.GroupKind{
		{Group: group, Kind: name},
		{Group: strings.Replace(group, ".upbound.io", ".m.upbound.io", 1), Kind: name},
	}
}

// id joins the parts of a resource's name in its cloud.
func id(parts ...string) string { return strings.Join(parts, "/") }

// belongsTo reports whether the resource with an id is part of another.
func belongsTo(part, whole string) bool { return strings.HasPrefix(part, whole+"/") }

// account is the subscription and the project that a ProviderConfig names.
type account struct{ subscriptionID, projectID string }

// identify returns the resource of the cloud that a managed resource stands for, as its provider determines it.
func identify(object *unstructured.Unstructured, in account) (resourceID, error) {
	kind := legacyKind(object.GroupVersionKind().GroupKind())
	externalName := object.GetAnnotations()[externalNameAnnotation]
	forProvider := func(field string) string {
		value, _, _ := unstructured.NestedString(object.Object, "spec", "forProvider", field)
		return value
	}
	var parts []string
	switch kind {
	case kindEKSCluster, kindVPC, kindSubnet, kindRouteTable:
		parts = []string{forProvider("region"), externalName}
	case kindEKSNodeGroup, kindEKSFargate:
		parts = []string{forProvider("region"), forProvider("clusterName"), externalName}
	case kindEKSClusterAuth:
		return resourceID{kindEKSCluster, id(forProvider("region"), forProvider("clusterName"))}, nil
	case kindAKSCluster:
		parts = []string{aksClusterID(in.subscriptionID, forProvider("resourceGroupName"), externalName)}
		if forProvider("resourceGroupName") == "" || externalName == "" {
			parts = nil
		}
	case kindAKSNodePool:
		parts = []string{forProvider("kubernetesClusterId"), "agentPools", externalName}
	case kindGKECluster:
		parts = []string{in.projectID, forProvider("location"), externalName}
	case kindGKENodePool:
		parts = []string{in.projectID, forProvider("location"), forProvider("cluster"), externalName}
	}
	if len(parts) == 0 || slices.Contains(parts, "") {
		return resourceID{}, fmt.Errorf("cannot get the identifier of %s %q: the external name or a field of forProvider is missing", kind, object.GetName())
	}
	return resourceID{kind, id(parts...)}, nil
}

func aksClusterID(subscription, group, name string) string {
	return id("/subscriptions", subscription, "resourceGroups", group, "providers/Microsoft.ContainerService/managedClusters", name)
}
