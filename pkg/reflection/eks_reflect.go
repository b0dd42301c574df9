// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"strings"
)

// awsIdentity makes the identity that Cluster API Provider AWS must refuse: it allows no namespace, and its Secret does
// not exist. The provider opens its session before it checks anything else, so it can neither change nor delete a
// reflected cluster, even when every annotation is lost.
func (r *reflector) awsIdentity() error {
	b, err := r.newObject(r.kinds.identity, "", r.imp.deniedName())
	if err != nil {
		return err
	}
	b.set("spec.secretRef", r.imp.deniedName())
	r.add(RoleIdentity, "", b, nil)
	return nil
}

func (r *reflector) awsCluster(_, status *builder) {
	r.setFailureDomains(status)
}

func (r *reflector) awsControlPlane(b, status *builder) {
	f, eks := r.facts, r.facts.EKS
	b.set("spec.identityRef", map[string]any{"kind": r.kinds.identity.Kind, "name": r.imp.deniedName()})
	b.set("spec.eksClusterName", r.imp.ClusterName)
	b.set("spec.region", f.Location)
	b.set("spec.version", f.Version)
	b.set("spec.roleName", f.RoleName)
	b.setEndpoint("spec.controlPlaneEndpoint", f.Endpoint)
	b.set("spec.endpointAccess.public", eks.EndpointPublic)
	b.set("spec.endpointAccess.private", eks.EndpointPrivate)
	b.set("spec.endpointAccess.publicCIDRs", eks.PublicAccessCIDRs)
	b.set("spec.accessConfig.authenticationMode", strings.ToLower(eks.AuthenticationMode))
	b.set("spec.upgradePolicy", strings.ToLower(eks.UpgradePolicy))
	b.set("spec.encryptionConfig.provider", eks.EncryptionKeyARN)
	b.set("spec.encryptionConfig.resources", eks.EncryptionResources)
	b.set("spec.bootstrapSelfManagedAddons", eks.BootstrapSelfManagedAddons)
	r.awsLogging(b)
	r.awsNetwork(b)
	for _, c := range f.Capacity {
		if c.Type == CapacityAutoMode || c.Type == CapacityFargate {
			b.lossy("spec", strings.TrimSuffix(c.Type+" "+c.Name, " "), "Cluster API has no field for this capacity")
		}
	}
	status.set("status.externalManagedControlPlane", true)
	status.set("status.version", statusVersion(f.Version))
	r.setFailureDomains(status)
}

func (r *reflector) awsLogging(b *builder) {
	if len(r.facts.EKS.LogTypes) == 0 {
		return
	}
	fields := map[string]string{
		"api": "apiServer", "audit": "audit", "authenticator": "authenticator", "controllerManager": "controllerManager", "scheduler": "scheduler",
	}
	logging := map[string]any{}
	for _, field := range fields {
		logging[field] = false
	}
	for _, logType := range r.facts.EKS.LogTypes {
		if field, known := fields[logType]; known {
			logging[field] = true
		} else {
			b.lossy("spec.logging", logType, "The field does not support the value")
		}
	}
	b.set("spec.logging", logging)
}

func (r *reflector) awsNetwork(b *builder) {
	f := r.facts
	b.set("spec.network.vpc.id", f.Network.ID)
	b.set("spec.network.vpc.cidrBlock", f.Network.CIDR)
	subnets := make([]map[string]any, 0, len(f.Subnets))
	for _, s := range f.Subnets {
		subnet := map[string]any{
			"id": s.ID, "cidrBlock": s.CIDR, "ipv6CidrBlock": s.IPv6CIDR, "availabilityZone": s.AvailabilityZone, "routeTableId": s.RouteTableID,
		}
		switch s.Visibility {
		case Public:
			subnet["isPublic"] = true
		case Private:
			subnet["isPublic"] = false
		default:
			b.notes.add(Lossy{
				Object: b.label(), Field: "spec.network.subnets[].isPublic", Observed: s.ID, Default: "false",
				Reason: "Whether the subnet is public is not known",
			})
		}
		if s.IPv6CIDR != "" {
			subnet["isIpv6"] = true
		}
		subnets = append(subnets, subnet)
	}
	b.setEach("spec.network.subnets", subnets)
	groups := map[string]string{}
	if f.EKS.ClusterSecurityGroupID != "" {
		groups["controlplane"] = f.EKS.ClusterSecurityGroupID
	}
	b.set("spec.network.securityGroupOverrides", groups)
	if len(f.EKS.SecurityGroupIDs) > 0 {
		b.lossy("spec.network.securityGroupOverrides", strings.Join(f.EKS.SecurityGroupIDs, ","), "Cluster API has no field for more security groups")
	}
	if f.EKS.IPFamily == "ipv6" {
		b.lossy("spec.network.vpc.ipv6", f.EKS.IPFamily, "The provider's webhook requires the add-ons then, which are not observed")
	}
}

// awsTaints are the effects as Cluster API Provider AWS spells them.
var awsTaints = map[string]string{"NoSchedule": "no-schedule", "NoExecute": "no-execute", "PreferNoSchedule": "prefer-no-schedule"}

func (r *reflector) awsPool(pool NodePool, b *builder) {
	b.set("spec.eksNodegroupName", pool.Name)
	b.set("spec.scaling.minSize", pool.MinSize)
	b.set("spec.scaling.maxSize", pool.MaxSize)
	b.set("spec.roleName", pool.RoleName)
	b.set("spec.subnetIDs", pool.SubnetIDs)
	b.set("spec.availabilityZones", pool.Zones)
	if len(pool.Zones) == 0 {
		b.lossy("spec.availabilityZones", "", "No subnet of the node pool is observed")
	}
	b.set("spec.diskSize", pool.DiskSizeGB)
	b.set("spec.labels", pool.Labels)
	b.setTaints("spec.taints", pool.Taints, awsTaints)
	b.setInstanceTypes("spec.instanceType", pool.InstanceTypes)
	r.awsImage(b, pool)
	if capacity, ok := map[string]string{"ON_DEMAND": "onDemand", "SPOT": "spot"}[pool.CapacityType]; ok {
		b.set("spec.capacityType", capacity)
	} else {
		b.lossy("spec.capacityType", pool.CapacityType, "The field does not support the value")
	}
	if pool.LaunchTemplate != "" {
		b.lossy("spec.awsLaunchTemplate", pool.LaunchTemplate, "The content of the launch template is not observed")
	}
}

// awsImage sets the image type. CUSTOM stands for one that the installed version does not know: left out, the default
// would claim another one.
func (r *reflector) awsImage(b *builder, pool NodePool) {
	const field, custom = "spec.amiType", "CUSTOM"
	if pool.ImageType != "" && b.knows(field, pool.ImageType) {
		b.set(field, pool.ImageType)
		return
	}
	b.annotate(ObservedImageTypeAnnotation, clean(pool.ImageType))
	if b.knows(field, custom) {
		b.set(field, custom)
		b.notes.add(Lossy{Object: b.label(), Field: field, Observed: clean(pool.ImageType), Default: custom, Reason: "The field does not support the value"})
		return
	}
	b.lossy(field, pool.ImageType, "The field does not support the value")
}
