// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providercrds

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// source is a folder of CRD files in a Go module.
type source struct {
	pin, module, folder string
}

var (
	providerAWS   = source{pin: "hack/providers", module: "github.com/upbound/provider-aws/v2", folder: "package/crds"}
	providerAzure = source{pin: "hack/providers", module: "github.com/upbound/provider-azure", folder: "package/crds"}
	providerGCP   = source{pin: "hack/providers", module: "github.com/upbound/provider-gcp", folder: "package/crds"}

	clusterAPI      = source{pin: "hack/controlplane/controllers", module: "sigs.k8s.io/cluster-api", folder: "core/config/crd/bases"}
	clusterAPIAWS   = source{pin: "hack/providers", module: "sigs.k8s.io/cluster-api-provider-aws/v2", folder: "config/crd/bases"}
	clusterAPIAzure = source{pin: "hack/providers", module: "sigs.k8s.io/cluster-api-provider-azure", folder: "config/crd/bases"}
	clusterAPIGCP   = source{pin: "hack/providers", module: "sigs.k8s.io/cluster-api-provider-gcp", folder: "config/crd/bases"}
)

// Groups of the CRDs.
const (
	groupClusterAPI     = "cluster.x-k8s.io"
	groupControlPlane   = "controlplane.cluster.x-k8s.io"
	groupInfrastructure = "infrastructure.cluster.x-k8s.io"

	groupEKS         = "eks.aws.upbound.io"
	groupEKSModern   = "eks.aws.m.upbound.io"
	groupEC2         = "ec2.aws.upbound.io"
	groupEC2Modern   = "ec2.aws.m.upbound.io"
	groupAWS         = "aws.upbound.io"
	groupAWSModern   = "aws.m.upbound.io"
	groupAKS         = "containerservice.azure.upbound.io"
	groupAKSModern   = "containerservice.azure.m.upbound.io"
	groupAzure       = "azure.upbound.io"
	groupAzureModern = "azure.m.upbound.io"
	groupGKE         = "container.gcp.upbound.io"
	groupGKEModern   = "container.gcp.m.upbound.io"
	groupGCP         = "gcp.upbound.io"
	groupGCPModern   = "gcp.m.upbound.io"
)

// crd is one CRD: its group and kind, and the plural that its file is named after.
type crd struct {
	group, kind, plural string
	source              source
}

func (c crd) groupKind() schema.GroupKind { return schema.GroupKind{Group: c.group, Kind: c.kind} }

// isManaged reports whether it is of a Crossplane provider, and isModern whether its managed resources are namespaced.
func (c crd) isManaged() bool { return strings.HasSuffix(c.group, ".upbound.io") }
func (c crd) isModern() bool  { return strings.HasSuffix(c.group, ".m.upbound.io") }

// managedResources are the managed resources that describe a cluster of a cloud, in the legacy groups.
func managedResources() []crd {
	return managedResourcesIn(groupEKS, groupEC2, groupAKS, groupGKE)
}

// modernManagedResources are those in the groups of namespaced managed resources.
func modernManagedResources() []crd {
	return managedResourcesIn(groupEKSModern, groupEC2Modern, groupAKSModern, groupGKEModern)
}

func managedResourcesIn(eks, ec2, aks, gke string) []crd {
	return []crd{
		{eks, "Cluster", "clusters", providerAWS},
		{eks, "NodeGroup", "nodegroups", providerAWS},
		{eks, "ClusterAuth", "clusterauths", providerAWS},
		{eks, "FargateProfile", "fargateprofiles", providerAWS},
		{ec2, "VPC", "vpcs", providerAWS},
		{ec2, "Subnet", "subnets", providerAWS},
		{ec2, "RouteTable", "routetables", providerAWS},
		{aks, "KubernetesCluster", "kubernetesclusters", providerAzure},
		{aks, "KubernetesClusterNodePool", "kubernetesclusternodepools", providerAzure},
		{gke, "Cluster", "clusters", providerGCP},
		{gke, "NodePool", "nodepools", providerGCP},
	}
}

// providerConfigs are the kinds that specify the identity with which a provider observes.
func providerConfigs() []crd {
	return []crd{
		{groupAWS, "ProviderConfig", "providerconfigs", providerAWS},
		{groupAWSModern, "ProviderConfig", "providerconfigs", providerAWS},
		{groupAWSModern, "ClusterProviderConfig", "clusterproviderconfigs", providerAWS},
		{groupAzure, "ProviderConfig", "providerconfigs", providerAzure},
		{groupAzureModern, "ProviderConfig", "providerconfigs", providerAzure},
		{groupAzureModern, "ClusterProviderConfig", "clusterproviderconfigs", providerAzure},
		{groupGCP, "ProviderConfig", "providerconfigs", providerGCP},
		{groupGCPModern, "ProviderConfig", "providerconfigs", providerGCP},
		{groupGCPModern, "ClusterProviderConfig", "clusterproviderconfigs", providerGCP},
	}
}

// clusterAPIKinds are the kinds of Cluster API core that an import creates.
func clusterAPIKinds() []crd {
	return []crd{
		{groupClusterAPI, "Cluster", "clusters", clusterAPI},
		{groupClusterAPI, "MachinePool", "machinepools", clusterAPI},
	}
}

// machineKinds are kinds of Cluster API core that an import never creates: for them core acts on the Nodes of a
// cluster.
func machineKinds() []crd {
	return []crd{
		{groupClusterAPI, "MachineDeployment", "machinedeployments", clusterAPI},
		{groupClusterAPI, "MachineSet", "machinesets", clusterAPI},
		{groupClusterAPI, "Machine", "machines", clusterAPI},
	}
}

// reflectedKinds are the kinds of Cluster API's providers that represent a cluster of a cloud.
func reflectedKinds() []crd {
	return []crd{
		{groupInfrastructure, "AWSManagedCluster", "awsmanagedclusters", clusterAPIAWS},
		{groupControlPlane, "AWSManagedControlPlane", "awsmanagedcontrolplanes", clusterAPIAWS},
		{groupInfrastructure, "AWSManagedMachinePool", "awsmanagedmachinepools", clusterAPIAWS},
		{groupInfrastructure, "AzureManagedCluster", "azuremanagedclusters", clusterAPIAzure},
		{groupInfrastructure, "AzureManagedControlPlane", "azuremanagedcontrolplanes", clusterAPIAzure},
		{groupInfrastructure, "AzureManagedMachinePool", "azuremanagedmachinepools", clusterAPIAzure},
		{groupInfrastructure, "GCPManagedCluster", "gcpmanagedclusters", clusterAPIGCP},
		{groupInfrastructure, "GCPManagedControlPlane", "gcpmanagedcontrolplanes", clusterAPIGCP},
		{groupInfrastructure, "GCPManagedMachinePool", "gcpmanagedmachinepools", clusterAPIGCP},
	}
}

// identities are the objects that name the credentials with which a Cluster API provider works.
func identities() []crd {
	return []crd{
		{groupInfrastructure, "AWSClusterRoleIdentity", "awsclusterroleidentities", clusterAPIAWS},
		{groupInfrastructure, "AWSClusterStaticIdentity", "awsclusterstaticidentities", clusterAPIAWS},
		{groupInfrastructure, "AzureClusterIdentity", "azureclusteridentities", clusterAPIAzure},
	}
}

func allCRDs() []crd {
	var all []crd
	for _, some := range [][]crd{
		managedResources(), modernManagedResources(), providerConfigs(), clusterAPIKinds(), reflectedKinds(), identities(),
	} {
		all = append(all, some...)
	}
	return all
}

// ManagedResources are the kinds of managed resources that describe a cluster of a cloud, in the legacy, cluster-scoped
// groups.
func ManagedResources() []schema.GroupKind { return groupKinds(managedResources()) }

// ModernManagedResources are the kinds of managed resources in the groups whose resources are namespaced.
func ModernManagedResources() []schema.GroupKind { return groupKinds(modernManagedResources()) }

// ProviderConfigs are the kinds that specify the identity with which a Crossplane provider observes.
func ProviderConfigs() []schema.GroupKind { return groupKinds(providerConfigs()) }

// ClusterAPI are Cluster and MachinePool of Cluster API core.
func ClusterAPI() []schema.GroupKind { return groupKinds(clusterAPIKinds()) }

// Machines are the kinds of Cluster API core for which it acts on the Nodes of a cluster, beside MachinePool.
func Machines() []schema.GroupKind { return groupKinds(machineKinds()) }

// Reflected are the three kinds of each of Cluster API's providers that represent a managed cluster.
func Reflected() []schema.GroupKind { return groupKinds(reflectedKinds()) }

// Identities are the kinds that name the credentials with which a Cluster API provider works. The provider for Google
// Cloud has none: it refers to a Secret.
func Identities() []schema.GroupKind { return groupKinds(identities()) }

// All are all kinds that imports involve, except Machines.
func All() []schema.GroupKind { return groupKinds(allCRDs()) }

func groupKinds(crds []crd) []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(crds))
	for _, crd := range crds {
		kinds = append(kinds, crd.groupKind())
	}
	return kinds
}

// Imports are the kinds that imports from all three clouds need besides Cluster API core's, with the managed resources
// in the namespaced groups.
func Imports() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, crd := range allCRDs() {
		if crd.source != clusterAPI && (!crd.isManaged() || crd.isModern()) {
			kinds = append(kinds, crd.groupKind())
		}
	}
	return kinds
}

// Webhooks are the admission webhooks of one of Cluster API's providers.
type Webhooks struct {
	// Program of hack/webhooks that serves them, and Module with their code.
	Program, Module string
	// Manifests is the file with their configurations.
	Manifests string
	// Resources are the plurals of the kinds that imports create.
	Resources []string
}

// LoadWebhooks finds the webhooks of all of Cluster API's providers.
func LoadWebhooks(ctx context.Context) ([]Webhooks, error) {
	var all []Webhooks
	for program, s := range map[string]source{"capa": clusterAPIAWS, "capg": clusterAPIGCP, "capz": clusterAPIAzure} {
		file, err := testenv.PinnedCRDs(ctx, s.pin, s.module, "config/webhook/manifests.yaml")
		if err != nil {
			return nil, err
		}
		w := Webhooks{Program: program, Module: s.module, Manifests: file}
		for _, c := range append(reflectedKinds(), identities()...) {
			if c.source == s {
				w.Resources = append(w.Resources, c.plural)
			}
		}
		all = append(all, w)
	}
	return all, nil
}
