// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import "time"

// Facts are what is known about an imported cluster. All of it comes from the owner of the cluster: strings are short
// and printable, lists are bounded, names and identifiers follow the cloud's grammar.
type Facts struct {
	Cloud Cloud
	// ID is the cloud's identifier: the ARN, the ID of Azure's Resource Manager, or projects/P/locations/L/clusters/C.
	ID string
	// Location is the region or zone.
	Location string
	// Account is the account, subscription or project that holds the cluster, as its ID says.
	Account string
	// Created is when the cloud created the cluster; zero if it does not say so.
	Created time.Time
	// Version is that of the control plane as the cloud reports it: "1.31" for EKS.
	Version string
	// Status as the cloud reports it, e.g. "ACTIVE". Empty means that it reports none.
	Status string
	// Endpoint of the API server. Host has no scheme.
	Endpoint Endpoint
	// CertificateAuthority is the PEM bundle in base64, as the cloud gives it. Empty means that it is not
	// observed: the kubeconfig has it, or Endpoint.SystemRoots is true.
	CertificateAuthority string
	// RoleName that the control plane has in its cloud.
	RoleName string
	// ServiceCIDRs and PodCIDRs of the cluster.
	ServiceCIDRs, PodCIDRs []string

	Network Network
	Subnets []Subnet

	// NodePools sorted by name.
	NodePools []NodePool
	// PendingNodePools are known by name and not observed yet; of GoneNodePools the provider found that they do not exist.
	PendingNodePools, GoneNodePools []string
	// NodePoolsComplete says that every pool that can be known is among NodePools. NodePoolsReason says why not.
	NodePoolsComplete bool
	NodePoolsReason   string
	// Capacity that belongs to no node pool.
	Capacity []Capacity

	// ClusterAPITags are the tags of a provider of Cluster API that manages, or once managed, the cluster, as they are.
	// OwnerTags are those of other tools, among them Crossplane: they say who made it.
	ClusterAPITags, OwnerTags []string
	// Lossy is what was observed and could not be read.
	Lossy []Lossy

	EKS EKSFacts
	AKS AKSFacts
	GKE GKEFacts
}

// Endpoint of an API server.
type Endpoint struct {
	Host string
	Port int32
	// Private says that it is reachable from the cluster's network only.
	Private bool
	// SystemRoots says that its certificate is signed by a public authority, not by CertificateAuthority.
	SystemRoots bool
}

// Network of the cluster.
type Network struct {
	// ID or name of the VPC or virtual network.
	ID string
	// CIDR is its first block of addresses. Empty means unknown.
	CIDR string
	// ResourceGroup that holds a virtual network of Azure.
	ResourceGroup string
}

// Visibility says whether a subnet's default route leads to the internet.
type Visibility string

// The visibilities of a subnet.
const (
	Public            Visibility = "Public"
	Private           Visibility = "Private"
	UnknownVisibility Visibility = "Unknown"
)

// Subnet of the cluster.
type Subnet struct {
	// ID or name.
	ID                  string
	CIDR, IPv6CIDR      string
	AvailabilityZone    string
	RouteTableID        string
	Visibility          Visibility
	VisibilityExplained string
	// Observed says that the subnet itself was read. Otherwise only its ID is known.
	Observed bool
}

// NodePool of the cluster. What a cloud does not have is empty.
type NodePool struct {
	Name   string
	Status string
	// Replicas is the wanted number of Nodes in all zones together, MinSize and MaxSize the bounds of its autoscaler in
	// one zone or in all, as the cloud counts. Nil means unknown.
	Replicas, MinSize, MaxSize *int32
	// ReadyNodes is the number of ready Nodes that bear the pool's label. Nil means that the Nodes are not known.
	ReadyNodes *int32
	// InstanceTypes: several for spot pools of EKS.
	InstanceTypes []string
	// ImageType as the cloud names it, e.g. the amiType of EKS or the osSku of AKS.
	ImageType string
	// CapacityType as the cloud names it, e.g. "SPOT".
	CapacityType string
	DiskSizeGB   *int32
	DiskType     string
	RoleName     string
	// LaunchTemplate of EKS as "<id or name>:<version>".
	LaunchTemplate string
	Labels         map[string]string
	Taints         []Taint
	Zones          []string
	SubnetIDs      []string
	// KubeletVersion as vX.Y.Z. Empty means unknown.
	KubeletVersion string
	// Mode and OSType of AKS.
	Mode, OSType string
	MaxPods      *int32
	// Autoscaled says whether the cloud's autoscaler changes the size. Nil means unknown.
	Autoscaled *bool
	// AutoRepair and AutoUpgrade of GKE.
	AutoRepair, AutoUpgrade *bool
	// LocationPolicy of the autoscaler of GKE.
	LocationPolicy string
	// ServiceAccount of GKE's Nodes.
	ServiceAccount string
}

// Taint has an effect of Kubernetes, e.g. "NoSchedule".
type Taint struct {
	Key, Value, Effect string
}

// Capacity is where Pods of the cluster run although no node pool is there.
type Capacity struct {
	// Type is one of the constants below.
	Type string
	// Name of the Fargate profile or the NodePool of Karpenter. Empty where there is none.
	Name string
	// Nodes of it. Zero when no Nodes are known.
	Nodes int32
}

// Types of Capacity.
const (
	CapacityFargate              = "Fargate"
	CapacityAutoMode             = "AutoMode"
	CapacityHybrid               = "Hybrid"
	CapacityKarpenter            = "Karpenter"
	CapacityAutopilot            = "Autopilot"
	CapacityNodeAutoProvisioning = "NodeAutoProvisioning"
	CapacityVirtualNode          = "VirtualNode"
	CapacitySelfManaged          = "SelfManaged"
)

// EKSFacts are what only EKS has.
type EKSFacts struct {
	EndpointPublic, EndpointPrivate *bool
	PublicAccessCIDRs               []string
	SecurityGroupIDs                []string
	ClusterSecurityGroupID          string
	AuthenticationMode              string
	IPFamily                        string
	UpgradePolicy                   string
	EncryptionKeyARN                string
	EncryptionResources             []string
	LogTypes                        []string
	BootstrapSelfManagedAddons      *bool
	AutoMode                        bool
	PlatformVersion                 string
}

// AKSFacts are what only AKS has.
type AKSFacts struct {
	ResourceGroupName, NodeResourceGroup string
	DNSPrefix                            string
	SKUTier                              string
	// AzureAD says that users are Entra ID's: the kubeconfig of the connection Secret then needs kubelogin.
	AzureAD                                                     bool
	AzureADAdminGroups                                          []string
	LocalAccountsDisabled                                       *bool
	PrivateCluster, PrivateClusterPublicFQDN                    *bool
	PrivateDNSZone                                              string
	AuthorizedIPRanges                                          []string
	NetworkPlugin, NetworkPluginMode, NetworkPolicy, DataPlane  string
	LoadBalancerSKU, OutboundType, DNSServiceIP, UpgradeChannel string
	IdentityType                                                string
	IdentityIDs                                                 []string
	OIDCIssuerEnabled, WorkloadIdentity                         *bool
	OIDCIssuer                                                  string
}

// GKEFacts are what only GKE has.
type GKEFacts struct {
	Autopilot                           *bool
	ReleaseChannel                      string
	Network, NetworkProject, Subnetwork string
	StackType                           string
	Region                              string
	VPCNative                           *bool
	PrivateEndpoint, PrivateNodes       *bool
	ControlPlaneGlobalAccess            *bool
	ControlPlaneCIDR                    string
	AuthorizedNetworks                  []AuthorizedNetwork
	// RestrictsNetworks says that there is a list of authorized networks, be it empty.
	RestrictsNetworks                 bool
	LoggingService, MonitoringService string
	IdentityService                   *bool
}

// AuthorizedNetwork may reach the control plane of a GKE cluster.
type AuthorizedNetwork struct {
	CIDR, Name string
}
