// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// The kinds of managed resources for EKS.
var (
	EKSCluster        = Kind{"eks", "aws", "Cluster"}
	EKSClusterAuth    = Kind{"eks", "aws", "ClusterAuth"}
	EKSNodeGroup      = Kind{"eks", "aws", "NodeGroup"}
	EKSFargateProfile = Kind{"eks", "aws", "FargateProfile"}
	EC2VPC            = Kind{"ec2", "aws", "VPC"}
	EC2Subnet         = Kind{"ec2", "aws", "Subnet"}
	EC2RouteTable     = Kind{"ec2", "aws", "RouteTable"}
)

// Identifiers of AWS.
var (
	vpcID           = regexp.MustCompile(`^vpc-[0-9a-f]{8,32}$`)
	subnetID        = regexp.MustCompile(`^subnet-[0-9a-f]{8,32}$`)
	routeTableID    = regexp.MustCompile(`^rtb-[0-9a-f]{8,32}$`)
	securityGroupID = regexp.MustCompile(`^sg-[0-9a-f]{8,32}$`)
)

var eksNames = grammar{
	cluster:   regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`),
	pool:      regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`),
	place:     regexp.MustCompile(`^[a-z]{2,5}(-[a-z]{2,12}){1,3}-[0-9]{1,2}$`),
	placeName: "region of AWS",
	poolLabel: "eks.amazonaws.com/nodegroup",
}

func eksCloud() cloud {
	return cloud{
		name: EKS, grammar: eksNames, find: findEKS,
		published: []fleetv1alpha1.KubeconfigSource{fleetv1alpha1.KubeconfigSourceProvider},
		// No ClusterImport can name Fargate profiles, so a hub need not serve or grant them.
		kinds:      []Kind{EKSCluster, EKSClusterAuth, EKSNodeGroup, EC2VPC, EC2Subnet, EC2RouteTable},
		placeField: "region", idField: "arn", // The id is the name.
		writesNothing: EKSClusterAuth,
		reflected: reflectedKinds{
			identity: infrastructure("AWSClusterStaticIdentity"), infraCluster: infrastructure("AWSManagedCluster"),
			controlPlane: schema.GroupKind{Group: groupControlPlane, Kind: "AWSManagedControlPlane"},
			infraPool:    infrastructure("AWSManagedMachinePool"),
		},
		plain:        infrastructure("AWSManagedCluster"),
		want:         (*wanter).eks,
		read:         (*reader).eks,
		identity:     (*reflector).awsIdentity,
		infraCluster: (*reflector).awsCluster, controlPlane: (*reflector).awsControlPlane, infraPool: (*reflector).awsPool,
	}
}

func findEKS(i *Import, s *fleetv1alpha1.ClusterImportSpec) bool {
	if s.EKS == nil {
		return false
	}
	i.Place, i.ClusterName = s.EKS.Region, s.EKS.ClusterName
	i.NodePools = append(i.NodePools, s.EKS.NodeGroupNames...)
	return true
}

func (w *wanter) eks(observed Observed) {
	region := func(more ...string) map[string]any {
		out := map[string]any{"region": w.imp.Place}
		for i := 0; i+1 < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	w.add(EKSCluster, w.imp.ClusterName, w.imp.ClusterName, region())
	if w.imp.ConnectionSecretName != "" {
		// Its controller knows no policies but all: it reads the cluster and signs a token, and its deletion does nothing.
		if auth := w.add(EKSClusterAuth, w.imp.ClusterName, "", region("clusterName", w.imp.ClusterName)); auth != nil {
			auth.Object["spec"].(map[string]any)["managementPolicies"] = []any{"*"}
			w.connect(auth)
		}
	}
	for _, name := range w.imp.poolNames(eksNames, observed, EKSNodeGroup, &w.notes) {
		w.add(EKSNodeGroup, name, name, region("clusterName", w.imp.ClusterName))
	}
	for _, name := range w.imp.FargateProfiles {
		w.add(EKSFargateProfile, name, name, region("clusterName", w.imp.ClusterName))
	}
	cluster, ok := atProvider(observed.resources(w.imp, EKSCluster)[w.imp.ClusterName], nil, "", &w.notes)
	if !ok {
		return
	}
	vpc := cluster.block("vpcConfig")
	if id := vpc.identifier("vpcId", vpcID); id != "" {
		w.add(EC2VPC, id, id, region())
	}
	for _, id := range w.imp.eksSubnetIDs(observed, vpc, &w.notes) {
		w.add(EC2Subnet, id, id, region())
	}
	for _, id := range w.imp.eksRouteTableIDs(observed, &w.notes) {
		w.add(EC2RouteTable, id, id, region())
	}
}

// eksSubnetIDs are the subnets of the cluster and of its node groups.
func (i Import) eksSubnetIDs(observed Observed, vpc block, n *notes) []string {
	ids := vpc.identifiers("subnetIds", subnetID)
	groups := observed.resources(i, EKSNodeGroup)
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if group, ok := atProvider(groups[name], nil, "NodeGroup/"+name, n); ok {
			ids = append(ids, group.identifiers("subnetIds", subnetID)...)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > MaxSubnets {
		n.add(Lossy{Field: "subnets", Reason: "There are more subnets than are read"})
		ids = ids[:MaxSubnets]
	}
	return ids
}

// eksRouteTableIDs are those that the user names, and the main one of the VPC where it decides.
func (i Import) eksRouteTableIDs(observed Observed, n *notes) []string {
	var ids []string
	for _, hint := range i.Subnets {
		if hint.RouteTableID != "" {
			ids = append(ids, hint.RouteTableID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	for _, mr := range observed.resources(i, EC2VPC) {
		if vpc, ok := atProvider(mr, nil, "VPC", n); ok {
			if id := vpc.identifier("mainRouteTableId", routeTableID); id != "" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (r *reader) eks(b block) error {
	f := &r.facts
	if err := r.eksIdentity(b); err != nil {
		return err
	}
	endpoint, err := parseEndpoint(b.text("endpoint"))
	if err != nil {
		return err
	}
	vpc, network := b.block("vpcConfig"), b.block("kubernetesNetworkConfig")
	f.Endpoint, f.Location = endpoint, r.imp.Place
	f.Version, f.Status = b.text("version"), b.text("status")
	f.Created = b.time("createdAt")
	f.RoleName = roleName(b.text("roleArn"))
	f.CertificateAuthority = b.certificate(b.block("certificateAuthority"), "data")
	f.Network.ID = vpc.identifier("vpcId", vpcID)
	f.ServiceCIDRs = r.cidrs(network, "serviceIpv4Cidr", "serviceIpv6Cidr")
	encryption := b.block("encryptionConfig")
	f.EKS = EKSFacts{
		EndpointPublic: vpc.flag("endpointPublicAccess"), EndpointPrivate: vpc.flag("endpointPrivateAccess"),
		PublicAccessCIDRs:          vpc.texts("publicAccessCidrs", maxListed),
		SecurityGroupIDs:           vpc.identifiers("securityGroupIds", securityGroupID),
		ClusterSecurityGroupID:     vpc.identifier("clusterSecurityGroupId", securityGroupID),
		AuthenticationMode:         b.block("accessConfig").text("authenticationMode"),
		IPFamily:                   network.text("ipFamily"),
		UpgradePolicy:              b.block("upgradePolicy").text("supportType"),
		EncryptionKeyARN:           encryption.block("provider").text("keyArn"),
		EncryptionResources:        encryption.texts("resources", maxListed),
		LogTypes:                   b.texts("enabledClusterLogTypes", maxListed),
		BootstrapSelfManagedAddons: b.flag("bootstrapSelfManagedAddons"),
		AutoMode:                   b.block("computeConfig").is("enabled"),
		PlatformVersion:            b.text("platformVersion"),
	}
	f.Endpoint.Private = f.EKS.EndpointPublic != nil && !*f.EKS.EndpointPublic
	r.readOwners(labels.Merge(b.pairs("tags", maxTags), b.pairs("tagsAll", maxTags)))
	r.eksNetwork(vpc)
	r.readPools(EKSNodeGroup, r.imp.poolNames(eksNames, r.observed, EKSNodeGroup, &r.notes), r.eksNodeGroup)
	r.eksCapacity(b)
	return nil
}

// eksIdentity makes sure that what was observed is the cluster that the import names, and takes the account.
func (r *reader) eksIdentity(b block) error {
	arn := b.text("arn")
	// arn:<partition>:eks:<region>:<account>:cluster/<name>
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || parts[3] != r.imp.Place || parts[5] != "cluster/"+r.imp.ClusterName {
		return fmt.Errorf("cannot import EKS cluster %q of %s: the provider observed %q", r.imp.ClusterName, r.imp.Place, clean(arn))
	}
	r.facts.ID, r.facts.Account = arn, parts[4]
	return nil
}

func (r *reader) eksNetwork(vpc block) {
	f := &r.facts
	e := evidence{routeTables: map[string]routeTable{}, publicTag: r.imp.PublicSubnetTag}
	if b, ok := r.atProvider(r.observed.resources(r.imp, EC2VPC)[f.Network.ID], "VPC"); ok {
		f.Network.CIDR = r.cidr(b, "cidrBlock")
		e.mainTable = b.identifier("mainRouteTableId", routeTableID)
	}
	tables := r.observed.resources(r.imp, EC2RouteTable)
	for _, id := range slices.Sorted(maps.Keys(tables)) {
		if b, ok := r.atProvider(tables[id], "RouteTable/"+id); ok {
			e.routeTables[id] = readRouteTable(b)
		}
	}
	e.hinted = slices.ContainsFunc(r.imp.Subnets, func(h SubnetHint) bool { return h.RouteTableID != "" })
	subnets := r.observed.resources(r.imp, EC2Subnet)
	for _, id := range r.imp.eksSubnetIDs(r.observed, vpc, &r.notes) {
		f.Subnets = append(f.Subnets, r.eksSubnet(id, subnets, e))
	}
}

func (r *reader) eksSubnet(id string, subnets resources, e evidence) Subnet {
	s := Subnet{ID: id}
	e.hint = r.imp.subnetHint(id)
	s.RouteTableID = e.hint.RouteTableID
	if b, ok := r.atProvider(subnets[id], "Subnet/"+id); ok {
		s.Observed = true
		s.CIDR, s.IPv6CIDR, s.AvailabilityZone = r.cidr(b, "cidrBlock"), r.cidr(b, "ipv6CidrBlock"), b.text("availabilityZone")
		e.tags, e.mapPublicIP = labels.Merge(b.pairs("tagsAll", maxTags), b.pairs("tags", maxTags)), b.is("mapPublicIpOnLaunch")
	}
	s.Visibility, s.VisibilityExplained = e.visibility()
	return s
}

func readRouteTable(b block) routeTable {
	var t routeTable
	// A route table of AWS has 1000 routes at most.
	for _, r := range b.blocks("route", 1000) {
		if r.text("cidrBlock") == "0.0.0.0/0" || r.text("ipv6CidrBlock") == "::/0" {
			t.defaultRoutes = append(t.defaultRoutes, route{gateway: r.text("gatewayId"), carrierGateway: r.text("carrierGatewayId")})
		}
	}
	return t
}

func (r *reader) eksNodeGroup(b block) NodePool {
	scaling, template := b.block("scalingConfig"), b.block("launchTemplate")
	pool := NodePool{
		Status:   b.text("status"),
		Replicas: scaling.number("desiredSize"), MinSize: scaling.number("minSize"), MaxSize: scaling.number("maxSize"),
		InstanceTypes: b.texts("instanceTypes", maxListed),
		ImageType:     b.text("amiType"),
		CapacityType:  b.text("capacityType"),
		DiskSizeGB:    b.number("diskSize"),
		RoleName:      roleName(b.text("nodeRoleArn")),
		Labels:        b.labels("labels"),
		SubnetIDs:     b.identifiers("subnetIds", subnetID),
		// With a custom image the release is the image's ID.
		KubeletVersion: kubeletVersion(b.text("releaseVersion")),
	}
	if id := cmp.Or(template.text("id"), template.text("name")); id != "" {
		pool.LaunchTemplate = id + ":" + template.text("version")
	}
	for _, t := range b.blocks("taint", maxTaints) {
		pool.Taints = t.taint(pool.Taints, t.text("key"), t.text("value"), t.text("effect"))
	}
	for _, id := range pool.SubnetIDs {
		at := slices.IndexFunc(r.facts.Subnets, func(s Subnet) bool { return s.ID == id })
		if at >= 0 && r.facts.Subnets[at].AvailabilityZone != "" {
			pool.Zones = append(pool.Zones, r.facts.Subnets[at].AvailabilityZone)
		}
	}
	slices.Sort(pool.Zones)
	pool.Zones = slices.Compact(pool.Zones)
	return pool
}

func (r *reader) eksCapacity(cluster block) {
	if r.facts.EKS.AutoMode {
		names := cluster.block("computeConfig").texts("nodePools", maxListed)
		if len(names) == 0 {
			names = []string{""}
		}
		for _, name := range names {
			r.facts.Capacity = append(r.facts.Capacity, Capacity{Type: CapacityAutoMode, Name: clean(name)})
		}
	}
	profiles := r.observed.resources(r.imp, EKSFargateProfile)
	for _, name := range r.imp.FargateProfiles {
		if _, ok := r.atProvider(profiles[name], "FargateProfile/"+name); ok {
			r.facts.Capacity = append(r.facts.Capacity, Capacity{Type: CapacityFargate, Name: name})
		}
	}
}

// roleName is the last part of the ARN of a role, without its path.
func roleName(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 || !strings.HasPrefix(parts[5], "role/") {
		return ""
	}
	return parts[5][strings.LastIndex(parts[5], "/")+1:]
}
