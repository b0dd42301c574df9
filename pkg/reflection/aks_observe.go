// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// The kinds of managed resources for AKS.
var (
	AKSCluster  = Kind{"containerservice", "azure", "KubernetesCluster"}
	AKSNodePool = Kind{"containerservice", "azure", "KubernetesClusterNodePool"}
)

var aksNames = grammar{
	cluster:   regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?$`),
	pool:      regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`),
	place:     regexp.MustCompile(`^[A-Za-z0-9_().-]{0,89}[A-Za-z0-9_()-]$`),
	placeName: "resource group of Azure",
	caseless:  true,
	// As Azure's API spells it.
	azureRegion: regexp.MustCompile(`^[a-z][a-z0-9]{0,39}$`),
	poolLabel:   "kubernetes.azure.com/agentpool",
}

func aksCloud() cloud {
	return cloud{
		name: AKS, grammar: aksNames, find: findAKS,
		// Nothing else has the authority and the port of its API server.
		published: []fleetv1alpha1.KubeconfigSource{
			fleetv1alpha1.KubeconfigSourceProvider, fleetv1alpha1.KubeconfigSourceAzureServicePrincipal, fleetv1alpha1.KubeconfigSourceToken,
		},
		kinds:      []Kind{AKSCluster, AKSNodePool},
		placeField: "resourceGroupName", idField: "id",
		// With it, clusterctl move announces a deletion. Without it, the last pool in System mode outlives the Cluster.
		removal: map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""},
		reflected: reflectedKinds{
			identity: infrastructure("AzureClusterIdentity"), infraCluster: infrastructure("AzureManagedCluster"),
			controlPlane: infrastructure("AzureManagedControlPlane"), infraPool: infrastructure("AzureManagedMachinePool"),
		},
		plain:    infrastructure("AzureManagedCluster"),
		oneCIDR:  true,
		want:     (*wanter).aks,
		read:     (*reader).aks,
		identity: (*reflector).azureIdentity, controlPlane: (*reflector).azureControlPlane, infraPool: (*reflector).azurePool,
	}
}

func findAKS(i *Import, s *fleetv1alpha1.ClusterImportSpec) bool {
	if s.AKS == nil {
		return false
	}
	i.Place, i.AzureRegion, i.ClusterName = s.AKS.ResourceGroupName, s.AKS.Location, s.AKS.ClusterName
	i.PublicName = s.AKS.Endpoint == fleetv1alpha1.AKSEndpointPublic
	return true
}

func (w *wanter) aks(observed Observed) {
	w.connect(w.add(AKSCluster, w.imp.ClusterName, w.imp.ClusterName, map[string]any{
		"resourceGroupName": w.imp.Place,
		// The provider does not observe a cluster without it (crossplane-contrib/provider-upjet-azure#1279).
		"location": w.imp.AzureRegion,
	}))
	cluster, ok := atProvider(observed.resources(w.imp, AKSCluster)[w.imp.ClusterName], nil, "", &w.notes)
	if !ok {
		return
	}
	id, _, err := aksID(w.imp, cluster)
	if err != nil {
		// Read says so. Nothing is looked up under another cluster's identifier.
		return
	}
	defaultPool := cluster.block("defaultNodePool").text("name")
	for _, name := range w.imp.poolNames(aksNames, observed, AKSNodePool, &w.notes) {
		if name != defaultPool {
			w.add(AKSNodePool, name, name, map[string]any{"kubernetesClusterId": id})
		}
	}
}

// clusterOfAzure takes the subscription, the resource group and the name out of an identifier of the Resource Manager.
var clusterOfAzure = regexp.MustCompile(
	`(?i)^/subscriptions/([0-9a-f-]{36})/resourceGroups/([^/]+)/providers/Microsoft\.ContainerService/managedClusters/([^/]+)$`)

// aksID is the identifier of the cluster and its subscription. It is an error when it is not that of the cluster that
// the import names.
func aksID(imp Import, cluster block) (id, subscription string, err error) {
	id = cluster.text("id")
	m := clusterOfAzure.FindStringSubmatch(id)
	if m == nil || !strings.EqualFold(m[2], imp.Place) || !strings.EqualFold(m[3], imp.ClusterName) {
		return "", "", fmt.Errorf("cannot import AKS cluster %q of resource group %q: the provider observed %q",
			imp.ClusterName, imp.Place, clean(id))
	}
	return id, m[1], nil
}

func (r *reader) aks(b block) error {
	f := &r.facts
	var err error
	if f.ID, f.Account, err = aksID(r.imp, b); err != nil {
		return err
	}
	if f.Endpoint, err = r.aksEndpoint(b); err != nil {
		return err
	}
	network := b.block("networkProfile")
	f.Location = b.text("location")
	f.Version = cmp.Or(b.text("currentKubernetesVersion"), b.text("kubernetesVersion"))
	f.ServiceCIDRs = r.cidrList(network, "serviceCidrs", "serviceCidr")
	f.PodCIDRs = r.cidrList(network, "podCidrs", "podCidr")
	f.AKS = r.aksFacts(b, network)
	r.readOwners(b.pairs("tags", maxTags))
	r.aksDefaultPool(b.block("defaultNodePool"))
	r.readPools(AKSNodePool, r.imp.poolNames(aksNames, r.observed, AKSNodePool, &r.notes), r.aksNodePool)
	if len(b.blocks("aciConnectorLinux", 1)) > 0 {
		f.Capacity = append(f.Capacity, Capacity{Type: CapacityVirtualNode})
	}
	return nil
}

// aksEndpoint prefers the private name of a private cluster, unless the import says otherwise: the public one, if there
// is any, leads to the same private address.
func (r *reader) aksEndpoint(b block) (Endpoint, error) {
	private := b.is("privateClusterEnabled")
	host := b.text("fqdn")
	if private && !r.imp.PublicName || host == "" {
		host = cmp.Or(b.text("privateFqdn"), host)
	}
	if strings.ContainsAny(host, ":/@") {
		return Endpoint{}, fmt.Errorf("cannot read the endpoint %q: not a host", clean(host))
	}
	e, err := parseEndpoint(host)
	e.Private = private
	return e, err
}

// isManagedByEntraID reports whether a cluster's users are those of Entra ID. Older providers have a block that says
// that they are not.
func isManagedByEntraID(aad []block) bool {
	if len(aad) == 0 {
		return false
	}
	managed := aad[0].optional().flag("managed")
	return managed == nil || *managed
}

// aksFacts reads the cluster. Where a field has two names, the first is that of azurerm 4, in provider-azure since v2.
func (r *reader) aksFacts(b, network block) AKSFacts {
	aad, access, identity := b.blocks("azureActiveDirectoryRoleBasedAccessControl", 1), b.block("apiServerAccessProfile"), b.block("identity")
	f := AKSFacts{
		ResourceGroupName: r.imp.Place, NodeResourceGroup: b.text("nodeResourceGroup"),
		DNSPrefix: b.text("dnsPrefix"), SKUTier: b.text("skuTier"),
		AzureAD:               isManagedByEntraID(aad),
		LocalAccountsDisabled: b.flag("localAccountDisabled"),
		PrivateCluster:        b.flag("privateClusterEnabled"), PrivateClusterPublicFQDN: b.flag("privateClusterPublicFqdnEnabled"),
		PrivateDNSZone:     b.text("privateDnsZoneId"),
		AuthorizedIPRanges: access.texts("authorizedIpRanges", maxListed),
		NetworkPlugin:      network.text("networkPlugin"), NetworkPluginMode: network.text("networkPluginMode"),
		NetworkPolicy: network.text("networkPolicy"), DataPlane: network.text(network.renamed("networkDataPlane", "ebpfDataPlane")),
		LoadBalancerSKU: network.text("loadBalancerSku"), OutboundType: network.text("outboundType"),
		DNSServiceIP: network.text("dnsServiceIp"), UpgradeChannel: b.text(b.renamed("automaticUpgradeChannel", "automaticChannelUpgrade")),
		IdentityType: identity.text("type"), IdentityIDs: identity.texts("identityIds", maxListed),
		OIDCIssuerEnabled: b.flag("oidcIssuerEnabled"), WorkloadIdentity: b.flag("workloadIdentityEnabled"),
		OIDCIssuer: b.text("oidcIssuerUrl"),
	}
	if f.AzureAD {
		f.AzureADAdminGroups = aad[0].texts("adminGroupObjectIds", maxListed)
	}
	return f
}

// aksDefaultPool reads the one pool that the cluster lists.
func (r *reader) aksDefaultPool(b block) {
	name := b.identifier("name", aksNames.pool)
	if name == "" || !r.imp.DiscoverNodePools && !slices.Contains(r.imp.NodePools, name) {
		return
	}
	// Azure has a default pool in System mode, and of Linux; the cluster's block does not say so.
	pool := NodePool{Name: name, Mode: "System", OSType: "Linux"}
	aksPool(b, &pool)
	pool.Taints = b.parseTaints("nodeTaints")
	if t := b.text("type"); t != "" && t != "VirtualMachineScaleSets" {
		b.note("type", t, "Cluster API supports scale sets only")
	}
	if b.is("onlyCriticalAddonsEnabled") {
		pool.Taints = b.taint(pool.Taints, "CriticalAddonsOnly", "true", "NoSchedule")
	}
	r.facts.NodePools = append(r.facts.NodePools, pool)
	// Every subnet is one of the cluster's network.
	r.facts.Network.ID, r.facts.Network.ResourceGroup, _ = azureSubnet(b.text("vnetSubnetId"))
}

func (r *reader) aksNodePool(b block) NodePool {
	pool := NodePool{Mode: b.text("mode"), OSType: b.text("osType"), CapacityType: b.text("priority"), Taints: b.parseTaints("nodeTaints")}
	aksPool(b, &pool)
	if price, found := b.get("spotMaxPrice"); found && scalar(price) != "-1" && pool.CapacityType == "Spot" {
		b.note("spotMaxPrice", scalar(price), "The highest price of spot instances is not read")
	}
	return pool
}

// aksPool reads what the default pool has, too.
func aksPool(b block, pool *NodePool) {
	pool.Replicas, pool.MaxPods = b.number("nodeCount"), b.number("maxPods")
	pool.InstanceTypes, pool.ImageType = b.texts("vmSize", 1), b.text("osSku")
	pool.DiskSizeGB, pool.DiskType = b.number("osDiskSizeGb"), b.text("osDiskType")
	pool.Labels, pool.Zones = b.labels("nodeLabels"), slices.Sorted(slices.Values(b.texts("zones", maxListed)))
	pool.KubeletVersion = kubeletVersion(b.text("orchestratorVersion"))
	pool.Autoscaled = b.flag(b.renamed("autoScalingEnabled", "enableAutoScaling"))
	if maximum := b.number("maxCount"); pool.Autoscaled != nil && *pool.Autoscaled {
		pool.MinSize, pool.MaxSize = b.number("minCount"), maximum
	} else if pool.Autoscaled == nil && maximum != nil {
		b.note("maxCount", scalar(int64(*maximum)), "Whether the pool is autoscaled is not observed")
	}
	if _, _, subnet := azureSubnet(b.text("vnetSubnetId")); subnet != "" {
		pool.SubnetIDs = []string{subnet}
	}
}

var subnetOfAzure = regexp.MustCompile(
	`(?i)^/subscriptions/[0-9a-f-]{36}/resourceGroups/([^/]{1,90})/providers/Microsoft\.Network/virtualNetworks/([^/]{1,64})/subnets/([^/]{1,80})$`)

// azureSubnet takes the names out of the identifier of a subnet.
func azureSubnet(id string) (network, resourceGroup, subnet string) {
	m := subnetOfAzure.FindStringSubmatch(id)
	if m == nil {
		return "", "", ""
	}
	return m[2], m[1], m[3]
}

// cidrList reads a list, or the one of the other field where the list is not there.
func (r *reader) cidrList(b block, list, one string) []string {
	all := b.texts(list, maxListed)
	if len(all) == 0 {
		return r.cidrs(b, one)
	}
	var out []string
	for _, s := range all {
		if s = b.cidr(list, s); s != "" {
			out = append(out, s)
		}
	}
	return out
}
