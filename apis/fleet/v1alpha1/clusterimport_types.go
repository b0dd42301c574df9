// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A ClusterImport reflects an existing cluster in EKS, AKS or GKE as objects of Cluster API, by observing it through
// Crossplane, and never changes it. The Cluster and its related objects have the name and the namespace of the
// ClusterImport.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=cimport,categories=masthead
// +kubebuilder:printcolumn:name="Cloud",type=string,JSONPath=`.status.observed.cloud`
// +kubebuilder:printcolumn:name="Region",type=string,JSONPath=`.status.observed.region`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.observed.version`
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.status.observed.nodePools`
// +kubebuilder:printcolumn:name="Access",type=string,JSONPath=`.status.conditions[?(@.type=="WorkloadAccess")].reason`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.observed.endpoint`,priority=1
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name is that of the reflected Cluster: at most 52 lower case letters, digits and \"-\", beginning with a letter and not ending with \"-\""
type ClusterImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cluster, and how it is reflected.
	// +required
	Spec ClusterImportSpec `json:"spec"`

	// status is the observed state of the import.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ClusterImportStatus `json:"status,omitempty"`
}

// ClusterImportSpec is a cluster, and how it is reflected. Exactly one of eks, aks and gke is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.eks), has(self.aks), has(self.gke)].filter(given, given).size() == 1",message="exactly one of eks, aks and gke is required"
// +kubebuilder:validation:XValidation:rule="has(self.eks) == has(oldSelf.eks) && has(self.aks) == has(oldSelf.aks) && has(self.gke) == has(oldSelf.gke)",message="another cloud would be another cluster: delete this ClusterImport and create another one"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeconfig) || !has(self.kubeconfig.user) || self.kubeconfig.user == 'User' || has(self.aks)",message="kubeconfig.user Admin is for AKS"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeconfig) || !has(self.kubeconfig.google) || has(self.gke)",message="kubeconfig.google is for GKE"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeconfig) || !has(self.kubeconfig.azure) || has(self.aks)",message="kubeconfig.azure is for AKS"
// +kubebuilder:validation:XValidation:rule="!has(self.gke) || !has(self.kubeconfig) || self.kubeconfig.source != 'Provider'",message="the provider for GKE publishes no credentials: use kubeconfig.source GoogleServiceAccount, Token or None"
// +kubebuilder:validation:XValidation:rule="!has(self.gke) || has(self.kubeconfig)",message="the provider for GKE publishes no credentials: use kubeconfig.source GoogleServiceAccount, Token or None"
// +kubebuilder:validation:XValidation:rule="!has(self.subnets) || has(self.eks)",message="subnets is for EKS"
type ClusterImportSpec struct {
	// eks is a cluster of Amazon's Elastic Kubernetes Service.
	// +optional
	EKS *EKSImport `json:"eks,omitempty"`

	// aks is a cluster of Azure's Kubernetes Service.
	// +optional
	AKS *AKSImport `json:"aks,omitempty"`

	// gke is a cluster of Google's Kubernetes Engine.
	// +optional
	GKE *GKEImport `json:"gke,omitempty"`

	// providerConfigRef is the configuration of the Crossplane provider with whose credentials the cluster is observed.
	// Read access suffices; docs/importer.md has the policies.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="another provider configuration can mean another account, and so another cluster: delete this ClusterImport and create another one"
	// +required
	ProviderConfigRef ProviderConfigReference `json:"providerConfigRef"`

	// kubeconfig is the source of the credentials for the cluster's API server. Absent means those that the provider
	// publishes.
	// +optional
	Kubeconfig *ImportKubeconfig `json:"kubeconfig,omitempty"`

	// subnets has information about subnets that cannot be observed. It is for EKS.
	// +optional
	Subnets *SubnetHints `json:"subnets,omitempty"`

	// nodePools says which node pools are reflected.
	// +kubebuilder:default={mode: Discover}
	// +optional
	NodePools ImportNodePools `json:"nodePools,omitempty"`

	// enroll is the value of the label masthead.dev/enroll on the reflected Cluster: "true", or the name of an
	// EnrollmentClass. Absent means that the import leaves that label alone.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="enroll is \"true\" or the name of an EnrollmentClass"
	// +optional
	Enroll string `json:"enroll,omitempty"`

	// pause says how much of the reflection is paused. Objects, the default: every object of a provider and every
	// MachinePool, individually. Strict: the Cluster too, so that Cluster API sets nothing on any of them. The cluster can
	// be enrolled either way.
	// +kubebuilder:default=Objects
	// +optional
	Pause ImportPause `json:"pause,omitempty"`

	// acknowledgedTags are tags of a provider of Cluster API that no longer manages the cluster. They do not stop the
	// import; tags of other tools never do.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	// +optional
	AcknowledgedTags []string `json:"acknowledgedTags,omitempty"`
}

// EKSImport names a cluster of EKS.
//
// +kubebuilder:validation:XValidation:rule="self.region == oldSelf.region && self.clusterName == oldSelf.clusterName",message="another value would name another cluster: create another import"
type EKSImport struct {
	// region of AWS, for example eu-central-1.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]{2,5}(-[a-z]+)+-[0-9]+$`
	// +required
	Region string `json:"region"`

	// clusterName is the name of the cluster in EKS.
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	// +required
	ClusterName string `json:"clusterName"`

	// nodeGroupNames names node groups, besides those that are discovered. EKS has no object that lists them: groups
	// scaled to zero are found only if named here.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z][0-9A-Za-z_-]*$`
	// +listType=set
	// +optional
	NodeGroupNames []string `json:"nodeGroupNames,omitempty"`
}

// AKSImport names a cluster of AKS. The subscription is that of the provider configuration.
type AKSImport struct {
	// resourceGroupName is the resource group of the cluster.
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:validation:Pattern=`^[-\w._()]*[-\w_()]$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="another value would name another cluster: create another import"
	// +required
	ResourceGroupName string `json:"resourceGroupName"`

	// clusterName is the name of the cluster in AKS.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z]([0-9A-Za-z_-]*[0-9A-Za-z])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="another value would name another cluster: create another import"
	// +required
	ClusterName string `json:"clusterName"`

	// location is the region of the cluster as Azure's API spells it, for example westeurope. Without it, the provider
	// observes no cluster, and does not say why.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="another value would name another cluster: create another import"
	// +required
	Location string `json:"location"`

	// endpoint is the name of a private cluster: Private, or Public, which resolves outside its network.
	// +kubebuilder:default=Private
	// +optional
	Endpoint AKSEndpoint `json:"endpoint,omitempty"`
}

// AKSEndpoint is how the API server of a private cluster of AKS is reached.
//
// +kubebuilder:validation:Enum=Private;Public
type AKSEndpoint string

const (
	// AKSEndpointPrivate is the private name, or the public one if the provider shows no other.
	AKSEndpointPrivate AKSEndpoint = "Private"

	// AKSEndpointPublic is the public name, or the private one if the provider shows no other.
	AKSEndpointPublic AKSEndpoint = "Public"
)

// GKEEndpoint is how the API server of a cluster of GKE is reached.
//
// +kubebuilder:validation:Enum=Address;DNS
type GKEEndpoint string

const (
	// GKEEndpointAddress is the IP address, or the DNS name if the address is switched off.
	GKEEndpointAddress GKEEndpoint = "Address"

	// GKEEndpointDNS is the DNS name, or the address if the provider shows no name.
	GKEEndpointDNS GKEEndpoint = "DNS"
)

// GKEImport names a cluster of GKE. The project is that of the provider configuration.
type GKEImport struct {
	// location is a region, as europe-west1, or a zone, as europe-west1-b.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]+(-[a-z]+)+[0-9]+(-[a-z0-9]+)?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="another value would name another cluster: create another import"
	// +required
	Location string `json:"location"`

	// clusterName is the name of the cluster in GKE.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="another value would name another cluster: create another import"
	// +required
	ClusterName string `json:"clusterName"`

	// endpoint is Address (or the DNS name, if the address is switched off) or DNS (if there is a name). With the name, the
	// credentials need the permission container.clusters.connect in Google Cloud, and tokens of ServiceAccounts work only
	// if the cluster allows them.
	// +kubebuilder:default=Address
	// +optional
	Endpoint GKEEndpoint `json:"endpoint,omitempty"`
}

// ProviderConfigReference names the configuration of a Crossplane provider.
type ProviderConfigReference struct {
	// kind is ProviderConfig or ClusterProviderConfig. A ProviderConfig is in the namespace of the ClusterImport. In
	// hubs whose managed resources are cluster-scoped, it is the only kind, and cluster-scoped. A cluster-scoped
	// configuration must allow the namespace by the annotation fleet.masthead.dev/allowed-import-namespaces.
	// +kubebuilder:validation:Enum=ProviderConfig;ClusterProviderConfig
	// +kubebuilder:default=ProviderConfig
	// +optional
	Kind string `json:"kind,omitempty"`

	// name of the configuration.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// SubnetType says whether a subnet has a route from the Internet.
//
// +kubebuilder:validation:Enum=Public;Private
type SubnetType string

const (
	// SubnetTypePublic is a subnet with a route to an Internet gateway.
	SubnetTypePublic SubnetType = "Public"

	// SubnetTypePrivate is a subnet without one.
	SubnetTypePrivate SubnetType = "Private"
)

// SubnetHints has information about subnets that cannot be observed.
type SubnetHints struct {
	// overrides says whether a subnet is public or private. It overrides everything that is observed.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=id
	// +optional
	Overrides []SubnetOverride `json:"overrides,omitempty"`

	// publicTag is the key of a tag on subnets that are public, for example giantswarm.io/public.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	PublicTag string `json:"publicTag,omitempty"`
}

// SubnetOverride has information about a subnet that cannot be observed.
//
// +kubebuilder:validation:XValidation:rule="has(self.type) || has(self.routeTableID)",message="at least one of type and routeTableID is required"
type SubnetOverride struct {
	// id of the subnet, for example subnet-0a1b2c3d.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^subnet-[0-9a-f]+$`
	// +required
	ID string `json:"id"`

	// type is Public or Private.
	// +optional
	Type SubnetType `json:"type,omitempty"`

	// routeTableID is the route table of the subnet, for example rtb-0a1b2c3d, which determines the type.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^rtb-[0-9a-f]+$`
	// +optional
	RouteTableID string `json:"routeTableID,omitempty"`
}

// NodePoolsMode says which node pools are reflected.
//
// +kubebuilder:validation:Enum=Discover;List
type NodePoolsMode string

const (
	// NodePoolsModeDiscover reflects pools listed by the cloud, named by the spec or shown by the labels of the cluster's
	// Nodes.
	NodePoolsModeDiscover NodePoolsMode = "Discover"

	// NodePoolsModeList reflects only the pools that the spec names.
	NodePoolsModeList NodePoolsMode = "List"
)

// ImportNodePools says which node pools are reflected.
//
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || self.mode != 'List' || has(self.names)",message="names is required with the mode List"
type ImportNodePools struct {
	// mode is Discover (pools listed by the cloud, in the field names, or shown by the labels of the cluster's Nodes) or
	// List (only the pools in the field names).
	// +kubebuilder:default=Discover
	// +optional
	Mode NodePoolsMode `json:"mode,omitempty"`

	// names of pools.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z]([0-9A-Za-z_-]*[0-9A-Za-z])?$`
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
}

// ImportPause says how much of a reflection is paused.
//
// +kubebuilder:validation:Enum=Objects;Strict
type ImportPause string

const (
	// ImportPauseObjects pauses every object of a provider and every MachinePool, individually.
	ImportPauseObjects ImportPause = "Objects"

	// ImportPauseStrict pauses the Cluster too.
	ImportPauseStrict ImportPause = "Strict"
)

// ImportCloud is the cloud of an imported cluster.
//
// +kubebuilder:validation:Enum=EKS;AKS;GKE
type ImportCloud string

// The clouds of imported clusters.
const (
	ImportCloudEKS ImportCloud = "EKS"
	ImportCloudAKS ImportCloud = "AKS"
	ImportCloudGKE ImportCloud = "GKE"
)

// ClusterImportList is a list of ClusterImports.
//
// +kubebuilder:object:root=true
type ClusterImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterImport `json:"items"`
}

// Cloud returns the cloud of the cluster.
func (s *ClusterImportSpec) Cloud() ImportCloud {
	switch {
	case s.EKS != nil:
		return ImportCloudEKS
	case s.AKS != nil:
		return ImportCloudAKS
	default:
		return ImportCloudGKE
	}
}

// KubeconfigSource returns the source of the kubeconfig, or the default.
func (s *ClusterImportSpec) KubeconfigSource() KubeconfigSource {
	if s.Kubeconfig == nil || s.Kubeconfig.Source == "" {
		return KubeconfigSourceProvider
	}
	return s.Kubeconfig.Source
}
