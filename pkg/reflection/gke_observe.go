// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strings"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// GKECluster is the kind of managed resource for GKE. It lists the node pools, so they need none of their own.
var GKECluster = Kind{"container", "gcp", "Cluster"}

var gkeNames = grammar{
	cluster:   regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`),
	pool:      regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`),
	place:     googleLocation,
	placeName: "region or zone of Google Cloud",
	poolLabel: "cloud.google.com/gke-nodepool",
}

func gkeCloud() cloud {
	return cloud{
		name: GKE, grammar: gkeNames, find: findGKE,
		kinds:      []Kind{GKECluster},
		placeField: "location", idField: "id", listsPools: true,
		reflected: reflectedKinds{
			infraCluster: infrastructure("GCPManagedCluster"),
			controlPlane: infrastructure("GCPManagedControlPlane"), infraPool: infrastructure("GCPManagedMachinePool"),
		},
		plain:        infrastructure("GCPManagedMachinePool"),
		want:         (*wanter).gke,
		read:         (*reader).gke,
		infraCluster: (*reflector).gcpCluster, controlPlane: (*reflector).gcpControlPlane, infraPool: (*reflector).gcpPool,
	}
}

func findGKE(i *Import, s *fleetv1alpha1.ClusterImportSpec) bool {
	if s.GKE == nil {
		return false
	}
	i.Place, i.ClusterName = s.GKE.Location, s.GKE.ClusterName
	i.DNSEndpoint = s.GKE.Endpoint == fleetv1alpha1.GKEEndpointDNS
	return true
}

func (w *wanter) gke(Observed) {
	w.connect(w.add(GKECluster, w.imp.ClusterName, w.imp.ClusterName, map[string]any{"location": w.imp.Place}))
}

var clusterOfGoogle = regexp.MustCompile(`^projects/([a-z0-9.:-]{1,100})/(?:locations|zones)/([a-z0-9-]{1,60})/clusters/([a-z0-9-]{1,63})$`)

func (r *reader) gke(b block) error {
	f := &r.facts
	f.ID = b.text("id")
	m := clusterOfGoogle.FindStringSubmatch(f.ID)
	if m == nil || m[2] != r.imp.Place || m[3] != r.imp.ClusterName {
		return fmt.Errorf("cannot import GKE cluster %q of %s: the provider observed %q", r.imp.ClusterName, r.imp.Place, clean(f.ID))
	}
	f.Account, f.Location = m[1], m[2]
	private := b.block("privateClusterConfig")
	var err error
	if f.Endpoint, err = r.gkeEndpoint(b, private); err != nil {
		return err
	}
	f.CertificateAuthority = b.certificate(b.block("masterAuth"), "clusterCaCertificate")
	f.Version = b.text("masterVersion")
	f.PodCIDRs, f.ServiceCIDRs = r.cidrs(b, "clusterIpv4Cidr"), r.cidrs(b, "servicesIpv4Cidr")
	if len(f.ServiceCIDRs) == 0 {
		f.ServiceCIDRs = r.cidrs(b.block("ipAllocationPolicy"), "servicesIpv4CidrBlock")
	}
	f.GKE = r.gkeFacts(b, private)
	f.Network.ID = f.GKE.Network
	r.readOwners(b.pairs("resourceLabels", maxTags))
	if r.autopilot() {
		// Google manages its pools: users cannot change them.
		f.Capacity = append(f.Capacity, Capacity{Type: CapacityAutopilot})
		return nil
	}
	if b.block("clusterAutoscaling").is("enabled") {
		f.Capacity = append(f.Capacity, Capacity{Type: CapacityNodeAutoProvisioning})
	}
	r.gkePools(b)
	return nil
}

// gkeEndpoint reads the address, or the DNS name, whose certificate Google's public authority signs. Newer providers
// have the name.
func (r *reader) gkeEndpoint(b, private block) (Endpoint, error) {
	endpoints := b
	if !r.imp.DNSEndpoint {
		endpoints = b.optional()
	}
	raw, name := b.text("endpoint"), endpoints.block("controlPlaneEndpointsConfig").block("dnsEndpointConfig").text("endpoint")
	if raw == "" || r.imp.DNSEndpoint && name != "" {
		raw = name
	}
	e, err := parseEndpoint(raw)
	if err != nil {
		return e, err
	}
	e.SystemRoots = net.ParseIP(e.Host) == nil
	e.Private = !e.SystemRoots && private.is("enablePrivateEndpoint")
	return e, nil
}

func (r *reader) gkeFacts(b, private block) GKEFacts {
	f := GKEFacts{
		Autopilot:       b.flag("enableAutopilot"),
		ReleaseChannel:  b.block("releaseChannel").text("channel"),
		Subnetwork:      lastPart(b.text("subnetwork")),
		StackType:       b.block("ipAllocationPolicy").text("stackType"),
		Region:          parseRegion(r.imp.Place),
		PrivateEndpoint: private.flag("enablePrivateEndpoint"), PrivateNodes: private.flag("enablePrivateNodes"),
		ControlPlaneGlobalAccess: private.block("masterGlobalAccessConfig").flag("enabled"),
		ControlPlaneCIDR:         r.cidr(private, "masterIpv4CidrBlock"),
		LoggingService:           b.text("loggingService"), MonitoringService: b.text("monitoringService"),
		IdentityService: b.block("identityServiceConfig").flag("enabled"),
	}
	network := b.text("network")
	f.Network = lastPart(network)
	if parts := strings.Split(network, "/"); len(parts) >= 2 && parts[0] == "projects" && parts[1] != r.facts.Account {
		f.NetworkProject = parts[1]
	}
	if mode := b.text("networkingMode"); mode != "" {
		native := mode == "VPC_NATIVE"
		f.VPCNative = &native
	}
	if networks := b.blocks("masterAuthorizedNetworksConfig", 1); len(networks) > 0 {
		f.RestrictsNetworks = true
		for _, n := range networks[0].blocks("cidrBlocks", maxListed) {
			if cidr := r.cidr(n, "cidrBlock"); cidr != "" {
				f.AuthorizedNetworks = append(f.AuthorizedNetworks, AuthorizedNetwork{CIDR: cidr, Name: n.text("displayName")})
			}
		}
	}
	return f
}

// gkePools reads the pools that the cluster lists: all that there are. One that the user names and that is not among
// them does not exist; one that Nodes show is newer than the observation.
func (r *reader) gkePools(b block) {
	f := &r.facts
	var all []string
	for _, p := range b.blocks("nodePool", MaxNodePools) {
		name := p.identifier("name", gkeNames.pool)
		if name == "" || slices.Contains(all, name) {
			continue
		}
		all = append(all, name)
		if !r.imp.DiscoverNodePools && !slices.Contains(r.imp.NodePools, name) {
			continue
		}
		pool := r.gkePool(p)
		pool.Name = name
		f.NodePools = append(f.NodePools, pool)
	}
	for _, name := range r.imp.poolNames(gkeNames, r.observed, Kind{}, &r.notes) {
		switch {
		case slices.Contains(all, name):
		case slices.Contains(r.imp.NodePools, name):
			f.GoneNodePools = append(f.GoneNodePools, name)
		default:
			f.PendingNodePools = append(f.PendingNodePools, name)
		}
	}
}

func (r *reader) gkePool(b block) NodePool {
	config, scaling, management := b.block("nodeConfig"), b.block("autoscaling"), b.block("management")
	pool := NodePool{
		InstanceTypes:  config.texts("machineType", 1),
		ImageType:      config.text("imageType"),
		DiskSizeGB:     config.number("diskSizeGb"),
		DiskType:       config.text("diskType"),
		ServiceAccount: config.text("serviceAccount"),
		Labels:         config.labels("labels"),
		Zones:          b.texts("nodeLocations", maxListed),
		KubeletVersion: kubeletVersion(b.text("version")),
		MaxPods:        b.number("maxPodsPerNode"),
		AutoRepair:     management.flag("autoRepair"), AutoUpgrade: management.flag("autoUpgrade"),
		LocationPolicy: scaling.text("locationPolicy"),
	}
	switch {
	case config.is("spot"):
		pool.CapacityType = "SPOT"
	case config.is("preemptible"):
		pool.CapacityType = "PREEMPTIBLE"
	}
	for _, t := range config.blocks("taint", maxTaints) {
		pool.Taints = t.taint(pool.Taints, t.text("key"), t.text("value"), t.text("effect"))
	}
	slices.Sort(pool.Zones)
	r.gkeScale(b, scaling, &pool)
	return pool
}

// gkeScale reads the size. The cloud counts Nodes per zone.
func (r *reader) gkeScale(b, scaling block, pool *NodePool) {
	zones := len(pool.Zones)
	if zones == 0 && parseRegion(r.imp.Place) != r.imp.Place {
		zones = 1
	}
	if perZone := b.number("nodeCount"); perZone != nil {
		if zones > 0 && int64(*perZone) <= math.MaxInt32/int64(zones) {
			var n int32
			for range zones {
				n += *perZone
			}
			pool.Replicas = &n
		} else {
			b.note("nodeCount", scalar(int64(*perZone)), "The number is per zone, and the zones are not known")
		}
	}
	autoscaled := false
	for _, field := range []string{"maxNodeCount", "totalMaxNodeCount"} {
		if n := scaling.number(field); n != nil && *n > 0 {
			autoscaled = true
		}
	}
	pool.Autoscaled = &autoscaled
	if n := scaling.number("maxNodeCount"); n != nil && *n > 0 {
		pool.MinSize, pool.MaxSize = scaling.number("minNodeCount"), n
	} else if total := scaling.number("totalMaxNodeCount"); total != nil && *total > 0 {
		scaling.note("totalMaxNodeCount", scalar(int64(*total)), "Cluster API has no field for a limit over all zones")
	}
}

// googleLocation is a region, or a zone of it. Sovereign clouds have a prefix, and zones for AI a longer name.
var googleLocation = regexp.MustCompile(`^([a-z]{1,20}(?:-[a-z]{2,20}){1,2}[0-9]{1,2})(?:-(?:[a-z]|ai[0-9]{1,2}[a-z]))?$`)

// parseRegion is the region of a zone, or the region itself: "europe-west1-b" is in "europe-west1".
func parseRegion(location string) string {
	if m := googleLocation.FindStringSubmatch(location); m != nil {
		return m[1]
	}
	return location
}

// lastPart is the name in "projects/p/global/networks/name".
func lastPart(path string) string { return path[strings.LastIndex(path, "/")+1:] }
