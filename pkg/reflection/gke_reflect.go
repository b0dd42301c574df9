// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import "strings"

// gcpCluster refers to credentials that do not exist: Cluster API Provider GCP builds its clients out of that Secret
// before it checks anything else, and would take the credentials of its own Pod if none were named.
func (r *reflector) gcpCluster(b, status *builder) {
	f, gke := r.facts, r.facts.GKE
	b.set("spec.credentialsRef", map[string]any{"name": r.imp.deniedName(), "namespace": r.imp.Namespace})
	b.set("spec.project", f.Account)
	b.set("spec.region", gke.Region)
	b.set("spec.network.name", gke.Network)
	b.set("spec.network.hostProject", gke.NetworkProject)
	if gke.Subnetwork != "" {
		subnet := map[string]any{"name": gke.Subnetwork, "region": gke.Region}
		if b.lossy("spec.network.subnets[].cidrBlock", gke.Subnetwork, "The CIDR block of the subnet is not observed"); gke.StackType != "" {
			subnet["stackType"] = gcpStackType(gke.StackType)
		}
		b.setEach("spec.network.subnets", []map[string]any{subnet})
	}
	r.setFailureDomains(status)
}

// gcpStackType is as the subnet spells it: the cluster says IPV4 where the subnet says IPV4_ONLY.
func gcpStackType(ofCluster string) string {
	if ofCluster == "IPV4" || ofCluster == "IPV6" {
		return ofCluster + "_ONLY"
	}
	return ofCluster
}

func (r *reflector) gcpControlPlane(b, status *builder) {
	f, gke := r.facts, r.facts.GKE
	b.set("spec.clusterName", r.imp.ClusterName)
	b.set("spec.project", f.Account)
	b.set("spec.location", f.Location)
	b.set("spec.version", f.Version)
	r.gcpAutopilot(b)
	b.set("spec.enableIdentityService", gke.IdentityService)
	b.setEndpoint("spec.endpoint", f.Endpoint)
	r.gcpNetwork(b)
	for _, c := range f.Capacity {
		if c.Type == CapacityNodeAutoProvisioning {
			b.lossy("spec", c.Type, "Cluster API has no field for this capacity")
		}
	}
	status.set("status.version", statusVersion(f.Version))
	status.set("status.currentVersion", f.Version)
}

// gcpAutopilot sets what the provider's webhook permits together: Autopilot only with a release channel, and without
// the services for logging and monitoring, which are Google's choice then.
func (r *reflector) gcpAutopilot(b *builder) {
	gke, channel := r.facts.GKE, strings.ToLower(r.facts.GKE.ReleaseChannel)
	b.set("spec.releaseChannel", channel)
	if gke.Autopilot == nil || !*gke.Autopilot {
		b.set("spec.enableAutopilot", gke.Autopilot)
		b.set("spec.loggingService", gke.LoggingService)
		b.set("spec.monitoringService", gke.MonitoringService)
		return
	}
	if channel == "" || !b.knows("spec.releaseChannel", channel) {
		b.lossy("spec.enableAutopilot", "true", "The provider's webhook permits Autopilot only with a release channel")
	} else {
		b.set("spec.enableAutopilot", true)
	}
	services := map[string]string{"spec.loggingService": gke.LoggingService, "spec.monitoringService": gke.MonitoringService}
	for field, observed := range services {
		if observed != "" {
			b.lossy(field, observed, "The provider's webhook refuses it with Autopilot")
		}
	}
}

func (r *reflector) gcpNetwork(b *builder) {
	f, gke := r.facts, r.facts.GKE
	if len(f.PodCIDRs) > 0 {
		b.set("spec.clusterNetwork.pod.cidrBlock", f.PodCIDRs[0])
	}
	if len(f.ServiceCIDRs) > 0 {
		b.set("spec.clusterNetwork.service.cidrBlock", f.ServiceCIDRs[0])
	}
	b.set("spec.clusterNetwork.useIPAliases", gke.VPCNative)
	b.set("spec.clusterNetwork.privateCluster.enablePrivateEndpoint", gke.PrivateEndpoint)
	b.set("spec.clusterNetwork.privateCluster.enablePrivateNodes", gke.PrivateNodes)
	b.set("spec.clusterNetwork.privateCluster.controlPlaneGlobalAccess", gke.ControlPlaneGlobalAccess)
	b.set("spec.clusterNetwork.privateCluster.controlPlaneCidrBlock", gke.ControlPlaneCIDR)
	if !gke.RestrictsNetworks {
		return
	}
	networks := make([]map[string]any, len(gke.AuthorizedNetworks))
	for i, n := range gke.AuthorizedNetworks {
		networks[i] = map[string]any{"cidr_block": n.CIDR, "display_name": n.Name}
	}
	if len(networks) == 0 {
		b.lossy("spec.master_authorized_networks_config", "", "The list of authorized networks is empty, so none is authorized")
	}
	b.setEach("spec.master_authorized_networks_config.cidr_blocks", networks)
}

func (r *reflector) gcpPool(pool NodePool, b *builder) {
	b.set("spec.nodePoolName", pool.Name)
	b.setInstanceTypes("spec.machineType", pool.InstanceTypes)
	b.set("spec.diskSizeGb", pool.DiskSizeGB)
	b.set("spec.diskType", pool.DiskType)
	b.set("spec.imageType", pool.ImageType)
	b.set("spec.kubernetesLabels", pool.Labels)
	b.setTaints("spec.kubernetesTaints", pool.Taints, nil)
	b.set("spec.nodeLocations", pool.Zones)
	b.set("spec.maxPodsPerNode", pool.MaxPods)
	b.set("spec.management.autoRepair", pool.AutoRepair)
	b.set("spec.management.autoUpgrade", pool.AutoUpgrade)
	b.set("spec.nodeSecurity.serviceAccount.email", pool.ServiceAccount)
	b.set("spec.scaling.enableAutoscaling", pool.Autoscaled)
	b.set("spec.scaling.minCount", pool.MinSize)
	b.set("spec.scaling.maxCount", pool.MaxSize)
	if pool.Autoscaled != nil && *pool.Autoscaled { // Otherwise the provider's webhook refuses it.
		b.set("spec.scaling.locationPolicy", strings.ToLower(pool.LocationPolicy))
	}
	if pool.CapacityType != "" { // SPOT or PREEMPTIBLE
		b.set("spec."+strings.ToLower(pool.CapacityType), true)
	}
}
