// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Cloud is the kind of managed Kubernetes that an import observes.
type Cloud string

// The clouds that can be imported.
const (
	EKS Cloud = "EKS"
	AKS Cloud = "AKS"
	GKE Cloud = "GKE"
)

// Import is what a ClusterImport asks for, apart from how it is stored. Everything in it comes from a user of the hub.
type Import struct {
	// Namespace, Name and UID are those of the ClusterImport. All three are part of the names of the managed resources.
	Namespace, Name string
	UID             types.UID

	Cloud Cloud
	// ClusterName is the name of the cluster in its cloud.
	ClusterName string
	// Place is where the cluster is looked for, in the terms of its cloud: the region of an EKS cluster, the resource
	// group of an AKS cluster, the region or zone of a GKE cluster.
	Place string
	// AzureRegion of an AKS cluster. It does not identify the cluster: other managers of it may spell it "West Europe".
	AzureRegion string
	// PublicName says that a private AKS cluster is reached by its public name, if it has one.
	PublicName bool
	// DNSEndpoint says that a GKE cluster is reached by its DNS name, if it has one, and not by its address.
	DNSEndpoint bool

	// ProviderConfig with which Crossplane observes.
	ProviderConfig ProviderConfig

	// Labels are written on everything that is made: the marks of the import.
	Labels map[string]string
	// ReflectedName is the name of the reflected Cluster: a DNS label. Empty means Name.
	ReflectedName string
	// ClusterLabels are written on the reflected Cluster, next to Labels. Nothing of the cloud's is ever added to them.
	ClusterLabels map[string]string

	// NodePools are the names that the user lists.
	NodePools []string
	// DiscoverNodePools adds the pools that the cloud and the Node labels show. Otherwise NodePools is the whole list.
	DiscoverNodePools bool
	// FargateProfiles are the names of EKS Fargate profiles: neither the cloud's objects nor Node labels show them.
	FargateProfiles []string
	// Subnets say what the API of the cloud does not return.
	Subnets []SubnetHint
	// PublicSubnetTag is a tag that says of a subnet "true" or "false". Empty means that no tag is read.
	PublicSubnetTag string

	// ConnectionSecretName is the Secret to which Crossplane writes the connection details. Empty means: none is written.
	ConnectionSecretName string
	// Paused gives managed resources the annotation crossplane.io/paused, so that they can be verified before a provider
	// acts on them.
	Paused bool
	// StrictPause also sets spec.paused of the reflected Cluster. Cluster API core then fills no status, so Reflect does.
	StrictPause bool
}

// ProviderConfig names the configuration of a Crossplane provider.
type ProviderConfig struct {
	// Kind is read by namespaced managed resources only. Empty means ClusterProviderConfig.
	Kind string
	// Name. Empty means "default".
	Name string
}

// SubnetHint is what a user says about a subnet of an EKS cluster.
type SubnetHint struct {
	ID string
	// Public overrides every observation.
	Public *bool
	// RouteTableID is the route table that is associated with the subnet: the cloud's objects do not show it.
	RouteTableID string
}

// Observed is what is there: the managed resources of the import as read from the hub, and the Nodes of the cluster.
type Observed struct {
	// Resources are managed resources of this import. Others in the list are ignored.
	Resources []*unstructured.Unstructured
	// Nodes of the imported cluster.
	Nodes []Node
	// NodesKnown says that Nodes was read. Otherwise no pool is taken for complete.
	NodesKnown bool
}

// Node is what an import reads of a Node of the imported cluster.
type Node struct {
	Labels         map[string]string
	KubeletVersion string
	Ready          bool
}

// ErrNotObserved says that the provider has not observed the cluster yet. Nothing can be reflected.
var ErrNotObserved = errors.New("cluster is not observed yet")

func (i Import) reflectedName() string {
	if i.ReflectedName != "" {
		return i.ReflectedName
	}
	return i.Name
}

func (i Import) subnetHint(id string) SubnetHint {
	for _, hint := range i.Subnets {
		if hint.ID == id {
			return hint
		}
	}
	return SubnetHint{}
}
