// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts are what is known of an imported cluster. All of it comes from the owner of the cluster: strings are short and
// printable, lists are bounded, names and identifiers follow the cloud's grammar.
type Facts struct {
	Cloud Cloud
	// ID is the cloud's identifier: the ARN, the ID of Azure's Resource Manager, or projects/P/locations/L/clusters/C.
	ID string
	// Location is the region or zone.
	Location string
	// Account is the account, subscription or project that holds the cluster, as its ID says.
	Account string
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
	// PendingNodePools are known by name and not observed: not yet, or their provider found that they do not exist (Gone).
	PendingNodePools, GoneNodePools []string
	// NodePoolsComplete says that every pool that can be known is among NodePools. NodePoolsReason says why not.
	NodePoolsComplete bool
	NodePoolsReason   string
	// Capacity that belongs to no node pool.
	Capacity []Capacity

	// ManagedElsewhere are the marks of others who manage this cluster, e.g. another Cluster API.
	ManagedElsewhere []string
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

// Visibility tells whether a subnet's default route leads to the internet.
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
	// Type is "Fargate", "AutoMode", "Karpenter", "Autopilot", "NodeAutoProvisioning", "VirtualNode" or "SelfManaged".
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
	CapacityKarpenter            = "Karpenter"
	CapacityAutopilot            = "Autopilot"
	CapacityNodeAutoProvisioning = "NodeAutoProvisioning"
	CapacityVirtualNode          = "VirtualNode"
	CapacitySelfManaged          = "SelfManaged"
)

// Read reads the facts out of what is observed. It returns ErrNotObserved until the provider has observed the cluster
// and the cluster has an endpoint, and another error when what it observed is not the cluster that the import names.
func Read(imp Import, observed Observed) (Facts, error) {
	if err := imp.Validate(); err != nil {
		return Facts{}, err
	}
	r := &reader{imp: imp, observed: observed, facts: Facts{Cloud: imp.Cloud}}
	c, _ := cloudOf(imp.Cloud)
	cluster := c.kinds[0]
	b, ok := atProvider(r.observed.resources(imp, cluster)[imp.ClusterName], cluster.Kind, &r.notes)
	if !ok {
		return Facts{}, ErrNotObserved
	}
	if err := c.read(r, b); err != nil {
		return Facts{}, err
	}
	r.countNodes()
	slices.SortFunc(r.facts.NodePools, func(a, b NodePool) int { return strings.Compare(a.Name, b.Name) })
	r.judgeCompleteness()
	r.facts.Lossy = r.notes.list()
	return r.facts, nil
}

// reader reads one cluster's facts.
type reader struct {
	imp      Import
	observed Observed
	facts    Facts
	notes    notes
}

// readPools reads the pools that are managed resources of their own.
func (r *reader) readPools(kind Kind, names []string, read func(block) NodePool) {
	resources := r.observed.resources(r.imp, kind)
	for _, name := range names {
		if slices.ContainsFunc(r.facts.NodePools, func(p NodePool) bool { return p.Name == name }) {
			continue
		}
		mr := resources[name]
		b, ok := atProvider(mr, kind.Kind+"/"+name, &r.notes)
		switch {
		case ok:
			pool := read(b)
			pool.Name = name
			r.facts.NodePools = append(r.facts.NodePools, pool)
		case mr != nil && IsGone(mr):
			r.facts.GoneNodePools = append(r.facts.GoneNodePools, name)
		default:
			r.facts.PendingNodePools = append(r.facts.PendingNodePools, name)
		}
	}
}

// countNodes counts the ready Nodes of each pool, and the capacity that belongs to none.
func (r *reader) countNodes() {
	if !r.observed.NodesKnown {
		return
	}
	c, _ := cloudOf(r.imp.Cloud)
	label := c.poolLabel
	ready, versions, capacity := map[string]int32{}, map[string]string{}, map[Capacity]int32{}
	for _, node := range r.observed.Nodes[:min(len(r.observed.Nodes), maxNodes)] {
		if pool, ok := node.Labels[label]; ok && !r.autopilot() {
			if v := kubeletVersion(node.KubeletVersion); v != "" && (versions[pool] == "" || v < versions[pool]) {
				versions[pool] = v
			}
			if node.Ready {
				ready[pool]++
			}
			continue
		}
		of := capacityOf(node)
		if r.autopilot() {
			of = Capacity{Type: CapacityAutopilot}
		}
		if _, known := capacity[of]; !known && len(capacity) >= maxCapacity {
			of = Capacity{Type: CapacitySelfManaged}
		}
		capacity[of]++
	}
	for i := range r.facts.NodePools {
		pool := &r.facts.NodePools[i]
		n := ready[pool.Name]
		pool.ReadyNodes = &n
		if pool.KubeletVersion == "" {
			pool.KubeletVersion = versions[pool.Name]
		}
	}
	r.addCapacity(capacity)
}

// autopilot says that all Nodes are Google's.
func (r *reader) autopilot() bool { return r.facts.GKE.Autopilot != nil && *r.facts.GKE.Autopilot }

// addCapacity adds what the Nodes show to what the cloud says.
func (r *reader) addCapacity(counted map[Capacity]int32) {
	for _, of := range slices.SortedFunc(maps.Keys(counted), compareCapacity) {
		at := slices.IndexFunc(r.facts.Capacity, func(c Capacity) bool { return c.Type == of.Type && c.Name == of.Name })
		if at < 0 {
			r.facts.Capacity = append(r.facts.Capacity, of)
			at = len(r.facts.Capacity) - 1
		}
		r.facts.Capacity[at].Nodes = counted[of]
	}
	slices.SortFunc(r.facts.Capacity, compareCapacity)
}

func compareCapacity(a, b Capacity) int {
	return strings.Compare(a.Type+"\x00"+a.Name, b.Type+"\x00"+b.Name)
}

// Labels of Nodes that belong to no pool.
const (
	computeTypeLabel   = "eks.amazonaws.com/compute-type"
	karpenterPoolLabel = "karpenter.sh/nodepool"
	virtualNodeLabel   = "type"
)

// NodeLabels are the labels of Nodes that are read: those that name a pool, in each cloud, and those that say what a
// Node without a pool is.
func NodeLabels() []string {
	labels := []string{computeTypeLabel, karpenterPoolLabel, virtualNodeLabel}
	for _, name := range []Cloud{EKS, AKS, GKE} {
		c, _ := cloudOf(name)
		labels = append(labels, c.poolLabel)
	}
	return labels
}

// capacityOf says to what a Node without a pool belongs. The names in its labels are foreign text.
func capacityOf(node Node) Capacity {
	karpenter, hasKarpenter := node.Labels[karpenterPoolLabel]
	switch {
	case node.Labels[computeTypeLabel] == "fargate":
		return Capacity{Type: CapacityFargate}
	case node.Labels[computeTypeLabel] == "auto":
		return Capacity{Type: CapacityAutoMode, Name: clean(karpenter)}
	case hasKarpenter:
		return Capacity{Type: CapacityKarpenter, Name: clean(karpenter)}
	case node.Labels[virtualNodeLabel] == "virtual-kubelet":
		return Capacity{Type: CapacityVirtualNode}
	default:
		return Capacity{Type: CapacitySelfManaged}
	}
}

func (r *reader) judgeCompleteness() {
	switch {
	case len(r.facts.PendingNodePools) > 0:
		r.facts.NodePoolsReason = "Node pools are not observed yet: " + listed(r.facts.PendingNodePools)
	case len(r.facts.GoneNodePools) > 0:
		r.facts.NodePoolsReason = "Node pools do not exist: " + listed(r.facts.GoneNodePools)
	case r.imp.Cloud != GKE && r.imp.DiscoverNodePools && !r.observed.NodesKnown:
		r.facts.NodePoolsReason = "The Nodes of the cluster are not known, and the cloud's objects do not list its node pools"
	default:
		r.facts.NodePoolsComplete = true
	}
}

// listed is a short list for a message.
func listed(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// markManagedElsewhere finds the marks of others in the tags of the cluster.
func (r *reader) markManagedElsewhere(tags map[string]string) {
	for _, key := range sortedKeys(tags) {
		switch {
		case strings.HasPrefix(key, "sigs.k8s.io/cluster-api-provider-aws/cluster/"),
			strings.HasPrefix(key, "sigs.k8s.io_cluster-api-provider-azure_cluster_"),
			strings.HasPrefix(key, "capg-cluster-"),
			strings.HasPrefix(key, "kubernetes.io/cluster/"):
			if tags[key] == "owned" {
				r.facts.ManagedElsewhere = append(r.facts.ManagedElsewhere, "tag "+clean(key))
			}
		case key == "crossplane-name":
			// Crossplane tags what it creates and updates, not what it observes.
			r.facts.ManagedElsewhere = append(r.facts.ManagedElsewhere, "managed resource "+clean(tags[key])+" of Crossplane")
		}
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
