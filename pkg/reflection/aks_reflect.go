// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// azureIdentity makes the identity that Cluster API Provider Azure must refuse: it allows no namespace, belongs to no
// tenant, and its Secret does not exist. The provider builds its credentials before it checks for a pause, so that is
// where it stops.
func (r *reflector) azureIdentity() error {
	b, err := r.newObject(r.kinds.identity, r.imp.Namespace, r.imp.deniedName())
	if err != nil {
		return err
	}
	const noID = "00000000-0000-0000-0000-000000000000"
	b.set("spec.type", "ServicePrincipal")
	b.set("spec.clientID", noID)
	b.set("spec.tenantID", noID)
	b.set("spec.clientSecret", map[string]any{"name": r.imp.deniedName(), "namespace": r.imp.Namespace})
	r.add(RoleIdentity, "", b, nil)
	return nil
}

func (r *reflector) azureControlPlane(b, status *builder) {
	f, aks := r.facts, r.facts.AKS
	// With the label, the provider's webhook requires the Cluster, which is created last.
	unstructured.RemoveNestedField(b.object.Object, "metadata", "labels", clusterv1.ClusterNameLabel)
	b.set("spec.identityRef", map[string]any{
		"apiVersion": r.schemas.Kind(r.kinds.identity).GroupVersion().String(), "kind": r.kinds.identity.Kind,
		"name": r.imp.deniedName(), "namespace": r.imp.Namespace,
	})
	b.set("spec.subscriptionID", f.Account)
	b.set("spec.resourceGroupName", aks.ResourceGroupName)
	b.set("spec.nodeResourceGroupName", aks.NodeResourceGroup)
	b.set("spec.location", f.Location)
	b.set("spec.version", cmp.Or(kubeletVersion(f.Version), f.Version))
	b.set("spec.dnsPrefix", aks.DNSPrefix)
	b.set("spec.sku.tier", aks.SKUTier)
	b.set("spec.oidcIssuerProfile.enabled", aks.OIDCIssuerEnabled)
	b.set("spec.securityProfile.workloadIdentity.enabled", aks.WorkloadIdentity)
	b.set("spec.autoUpgradeProfile.upgradeChannel", aks.UpgradeChannel)
	b.setEndpoint("spec.controlPlaneEndpoint", f.Endpoint)
	r.azureAccess(b)
	r.azureNetwork(b)
	status.set("status.version", cmp.Or(kubeletVersion(f.Version), f.Version))
	status.set("status.oidcIssuerProfile.issuerURL", aks.OIDCIssuer)
}

func (r *reflector) azureAccess(b *builder) {
	aks := r.facts.AKS
	b.set("spec.apiServerAccessProfile.enablePrivateCluster", aks.PrivateCluster)
	b.set("spec.apiServerAccessProfile.enablePrivateClusterPublicFQDN", aks.PrivateClusterPublicFQDN)
	b.set("spec.apiServerAccessProfile.privateDNSZone", aks.PrivateDNSZone)
	b.set("spec.apiServerAccessProfile.authorizedIPRanges", aks.AuthorizedIPRanges)
	// The webhook refuses each update of a profile without groups, and disableLocalAccounts without a profile.
	if len(aks.AzureADAdminGroups) > 0 {
		groups := make([]any, len(aks.AzureADAdminGroups))
		for i, group := range aks.AzureADAdminGroups {
			groups[i] = group
		}
		b.set("spec.aadProfile", map[string]any{"managed": true, "adminGroupObjectIDs": groups})
		b.set("spec.disableLocalAccounts", aks.LocalAccountsDisabled)
	} else if aks.AzureAD {
		b.lossy("spec.aadProfile", "", "The provider's webhook refuses Entra ID without groups of administrators")
	}
	b.set("spec.identity.type", aks.IdentityType)
	if aks.IdentityType == "UserAssigned" && len(aks.IdentityIDs) > 0 {
		b.set("spec.identity.userAssignedIdentityResourceID", aks.IdentityIDs[0])
		if len(aks.IdentityIDs) > 1 {
			b.lossy("spec.identity.userAssignedIdentityResourceID", strings.Join(aks.IdentityIDs, ","), "The field can hold only one of several identities")
		}
	}
}

func (r *reflector) azureNetwork(b *builder) {
	f, aks := r.facts, r.facts.AKS
	b.set("spec.networkPlugin", aks.NetworkPlugin)
	b.set("spec.networkPluginMode", strings.ToLower(aks.NetworkPluginMode))
	b.set("spec.networkPolicy", aks.NetworkPolicy)
	refused := !strings.EqualFold(aks.NetworkPluginMode, "overlay") || aks.NetworkPolicy != "cilium"
	if aks.DataPlane == "cilium" && refused {
		b.lossy("spec.networkDataplane", aks.DataPlane, "The provider's webhook permits cilium only with the mode overlay and the policy cilium")
	} else {
		b.set("spec.networkDataplane", aks.DataPlane)
	}
	b.set("spec.outboundType", aks.OutboundType)
	if dns := aks.DNSServiceIP; dns != "" && !isAzureDNS(dns, f.ServiceCIDRs) {
		b.lossy("spec.dnsServiceIP", dns, "The provider's webhook permits only an address that ends in .10, in the one CIDR block of services")
	} else {
		b.set("spec.dnsServiceIP", dns)
	}
	// The cloud spells it "standard", the kind "Standard".
	if sku := aks.LoadBalancerSKU; sku != "" {
		b.set("spec.loadBalancerSKU", strings.ToUpper(sku[:1])+strings.ToLower(sku[1:]))
	}
	if f.Network.ID == "" {
		b.lossy("spec.virtualNetwork.name", "", "Azure manages the virtual network, and its provider shows no name; the provider's webhook may generate one")
		return
	}
	b.set("spec.virtualNetwork.name", f.Network.ID)
	b.set("spec.virtualNetwork.resourceGroup", f.Network.ResourceGroup)
	b.lossy("spec.virtualNetwork.cidrBlock", "", "The CIDR block of the virtual network is not observed")
	if subnet := r.azureSystemSubnet(); subnet != "" {
		b.set("spec.virtualNetwork.subnet.name", subnet)
		b.lossy("spec.virtualNetwork.subnet.cidrBlock", "", "The CIDR block of the subnet is not observed")
	}
}

// isAzureDNS reports whether the provider's webhook permits an address of the cluster's DNS.
func isAzureDNS(address string, services []string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil || len(services) == 0 {
		return false
	}
	block, err := netip.ParsePrefix(services[0])
	return err == nil && block.Contains(ip) && strings.HasSuffix(ip.String(), ".10")
}

// azureSystemSubnet is that of the first pool in System mode.
func (r *reflector) azureSystemSubnet() string {
	for _, p := range r.facts.NodePools {
		if p.Mode == "System" && len(p.SubnetIDs) > 0 {
			return p.SubnetIDs[0]
		}
	}
	return ""
}

func (r *reflector) azurePool(pool NodePool, b *builder) {
	b.set("spec.name", pool.Name)
	b.set("spec.mode", pool.Mode)
	b.setInstanceTypes("spec.sku", pool.InstanceTypes)
	b.set("spec.scaling.minSize", pool.MinSize)
	b.set("spec.scaling.maxSize", pool.MaxSize)
	b.set("spec.nodeLabels", r.azureNodeLabels(pool.Labels, b))
	b.setTaints("spec.taints", pool.Taints, nil)
	b.set("spec.osType", pool.OSType)
	b.set("spec.osDiskSizeGB", pool.DiskSizeGB)
	b.set("spec.osDiskType", pool.DiskType)
	b.set("spec.scaleSetPriority", pool.CapacityType)
	b.set("spec.availabilityZones", pool.Zones)
	b.set("spec.maxPods", pool.MaxPods)
	if len(pool.SubnetIDs) > 0 {
		b.set("spec.subnetName", pool.SubnetIDs[0])
	}
	if pool.ImageType != "" {
		b.annotate(ObservedImageTypeAnnotation, clean(pool.ImageType))
		b.lossy("spec.osSKU", pool.ImageType, "Cluster API has no field for the operating system's variant")
	}
}

// azureNodeLabels leaves out the labels that Azure sets itself: the provider's webhook refuses them.
func (r *reflector) azureNodeLabels(observed map[string]string, b *builder) map[string]string {
	kept := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(observed)) {
		if strings.HasPrefix(key, "kubernetes.azure.com") {
			b.lossy("spec.nodeLabels", key, "Azure sets the label, and the provider's webhook refuses it")
			continue
		}
		kept[key] = observed[key]
	}
	return kept
}
