// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

func TestGKERegional(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "gke-regional")
	imp := newImport(f)
	imp.NodePools = []string{"retired"}
	facts, reflected := hub.reflect(t, imp, served(reflection.GKE, false, true), f)
	// "new" is on a Node and not yet in the observation; "retired" is named by the user and not in the cloud's list.
	if diff := cmp.Diff([]string{"new"}, facts.PendingNodePools); diff != "" {
		t.Errorf("pending pools: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"retired"}, facts.GoneNodePools); diff != "" || facts.NodePoolsComplete {
		t.Errorf("gone pools: -want, +got:\n%s complete %v", diff, facts.NodePoolsComplete)
	}
	credentials, _ := object(t, reflected, "GCPManagedCluster", "prod").Object.Object["spec"].(map[string]any)["credentialsRef"].(map[string]any)
	name, _ := credentials["name"].(string)
	for _, c := range []struct{ reason, kind, name, spec string }{
		{"the cluster names a Secret that does not exist", "GCPManagedCluster", "prod", `
controlPlaneEndpoint: {host: 10.90.0.2, port: 443}
credentialsRef: {name: ` + name + `, namespace: team-a}
network: {name: shared, hostProject: net-host, subnets: [{name: gke, region: europe-west1, stackType: IPV4_ONLY}]}
project: shop-12345
region: europe-west1`},
		{"the whole control plane", "GCPManagedControlPlane", "prod", `
clusterName: shop-prod
clusterNetwork:
  pod: {cidrBlock: 10.96.0.0/14}
  service: {cidrBlock: 10.100.0.0/20}
  useIPAliases: true
  privateCluster: {controlPlaneCidrBlock: 10.90.0.0/28, controlPlaneGlobalAccess: true, enablePrivateEndpoint: true, enablePrivateNodes: true}
endpoint: {host: 10.90.0.2, port: 443}
location: europe-west1
loggingService: logging.googleapis.com/kubernetes
monitoringService: monitoring.googleapis.com/kubernetes
master_authorized_networks_config: {cidr_blocks: [{cidr_block: 10.0.0.0/8, display_name: office}]}
project: shop-12345
releaseChannel: regular
version: 1.30.5-gke.1443001`},
		{"an autoscaled pool in three zones", "GCPManagedMachinePool", "prod-general-546c23de223c", `
diskSizeGb: 100
diskType: pd-balanced
imageType: COS_CONTAINERD
kubernetesLabels: {tier: general}
machineType: e2-standard-4
management: {autoRepair: true, autoUpgrade: true}
maxPodsPerNode: 110
nodeLocations: [europe-west1-b, europe-west1-c, europe-west1-d]
nodePoolName: general
nodeSecurity: {serviceAccount: {email: nodes@shop-12345.iam.gserviceaccount.com}}
scaling: {enableAutoscaling: true, locationPolicy: balanced, minCount: 1, maxCount: 5}`},
		{"a spot pool with a disk that the kind does not know", "GCPManagedMachinePool", "prod-spot-b10bc37c5f67", `
diskSizeGb: 80
imageType: COS_CONTAINERD
kubernetesTaints: [{key: spot, value: "true", effect: NoSchedule}]
machineType: c4-standard-8
management: {autoRepair: true, autoUpgrade: true}
nodeLocations: [europe-west1-b]
nodePoolName: spot
scaling: {enableAutoscaling: true, locationPolicy: any}
spot: true`},
		{"the number of Nodes is that of all zones", "MachinePool", "prod-general-546c23de223c", `
clusterName: prod
failureDomains: [europe-west1-b, europe-west1-c, europe-west1-d]
replicas: 6
template:
  spec:
    bootstrap: {dataSecretName: ""}
    clusterName: prod
    infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: GCPManagedMachinePool, name: prod-general-546c23de223c}
    version: v1.30.5`},
	} {
		checkSpec(t, c.reason, object(t, reflected, c.kind, c.name), c.spec)
	}
	if diff := cmp.Diff([]string{
		" Cluster.nodePool.autoscaling.totalMaxNodeCount",
		"GCPManagedCluster/prod spec.network.subnets[].cidrBlock",
		"GCPManagedControlPlane/prod spec",
		"GCPManagedMachinePool/prod-spot-b10bc37c5f67 spec.diskType",
	}, lossyFields(reflected)); diff != "" {
		t.Errorf("lossy: -want, +got:\n%s", diff)
	}
}

func TestGKEZonalWithDNSEndpoint(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "gke-zonal")
	// Without autoscaling, the provider's webhook refuses a policy for it.
	f.Resources[0].AtProvider["nodePool"].([]any)[0].(map[string]any)["autoscaling"] = map[string]any{"locationPolicy": "BALANCED"}
	facts, reflected := hub.reflect(t, newImport(f), served(reflection.GKE, false, true), f)
	if !facts.Endpoint.SystemRoots || facts.Endpoint.Private || !strings.HasSuffix(facts.Endpoint.Host, ".gke.goog") {
		t.Errorf("endpoint %+v, want a DNS name whose certificate the system's roots vouch for", facts.Endpoint)
	}
	pool, _ := object(t, reflected, "MachinePool", "prod-default-pool-e60dae208e3c").Object.Object["spec"].(map[string]any)
	if pool["replicas"] != int64(3) {
		t.Errorf("a pool of a zonal cluster without zones has %v Nodes, want 3", pool["replicas"])
	}
	infrastructure, _ := object(t, reflected, "GCPManagedMachinePool", "prod-default-pool-e60dae208e3c").Object.Object["spec"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"enableAutoscaling": false}, infrastructure["scaling"]); diff != "" || infrastructure["preemptible"] != true {
		t.Errorf("preemptible %v, scaling: -want, +got:\n%s", infrastructure["preemptible"], diff)
	}
	if diff := cmp.Diff([]string{
		"GCPManagedCluster/prod spec.network.subnets[].cidrBlock",
		"GCPManagedControlPlane/prod spec.releaseChannel",
	}, lossyFields(reflected)); diff != "" {
		t.Errorf("lossy: -want, +got:\n%s", diff)
	}
}

// TestGKEEndpoint: the DNS name is used on request, and where the address is switched off.
func TestGKEEndpoint(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	const address, dns = "10.90.0.2", "gke-0123456789abcdef-12345.europe-west3.gke.goog"
	for name, tc := range map[string]struct {
		address, dns string
		requested    bool
		want         string
	}{
		"Address":    {address, dns, false, address},
		"AddressOff": {"", dns, false, dns},
		"DNS":        {address, dns, true, dns},
		"NoDNS":      {address, "", true, address},
	} {
		f := loadFixture(t, "gke-zonal")
		maps.Copy(f.Resources[0].AtProvider, map[string]any{
			"endpoint":             tc.address,
			"privateClusterConfig": map[string]any{"enablePrivateEndpoint": true},
			"controlPlaneEndpointsConfig": map[string]any{
				"dnsEndpointConfig": map[string]any{"endpoint": tc.dns},
			},
		})
		imp := newImport(f)
		imp.DNSEndpoint = tc.requested
		facts, _ := hub.reflect(t, imp, served(reflection.GKE, false, true), f)
		if e := facts.Endpoint; e.Host != tc.want || e.Private != (tc.want == address) || tc.want == dns && !e.SystemRoots {
			t.Errorf("%s: want %q, got %+v", name, tc.want, e)
		}
	}
}

// TestGKEListsItsPools: no Node is needed to know them all. Clusters of the other clouds list none.
func TestGKEListsItsPools(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	for name, want := range map[string]bool{"gke-zonal": true, "eks-standard": false, "aks-standard": false} {
		f := loadFixture(t, name)
		imp := newImport(f)
		observed, _ := hub.observe(t, imp, served(imp.Cloud, false, true), f, false)
		if facts, err := reflection.Read(imp, hub.schemas, observed); err != nil || facts.NodePoolsComplete != want {
			t.Errorf("%s: want all pools known %t, got %t (%s), %v", name, want, facts.NodePoolsComplete, facts.NodePoolsReason, err)
		}
	}
}

// TestGKELocations: sovereign clouds have a prefix, and zones for AI a longer name.
func TestGKELocations(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	for location, region := range map[string]string{
		"europe-west1": "europe-west1", "europe-west1-b": "europe-west1", "us-central1-ai1a": "us-central1",
		"u-germany-northeast1": "u-germany-northeast1", "u-germany-northeast1-a": "u-germany-northeast1",
		"europe-west1-": "", "europe-west1-b-c": "", "europe": "", "../europe-west1": "", "europe-west1-ai": "",
	} {
		f := loadFixture(t, "gke-autopilot")
		f.Place = location
		imp := newImport(f)
		if err := imp.Validate(); (err != nil) != (region == "") {
			t.Errorf("%q: %v", location, err)
		}
		if region == "" {
			continue
		}
		f.Resources[0].AtProvider["id"] = "projects/apps-project/locations/" + location + "/clusters/apps"
		_, reflected := hub.reflect(t, imp, served(reflection.GKE, false, true), f)
		spec, _ := object(t, reflected, "GCPManagedCluster", "prod").Object.Object["spec"].(map[string]any)
		if spec["region"] != region {
			t.Errorf("%q: want the region %q, got %v", location, region, spec["region"])
		}
	}
}

// TestGKEAutopilot: CAPG's webhook refuses Autopilot without a release channel, and with the services that GKE reports.
func TestGKEAutopilot(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	for name, tc := range map[string]struct {
		reason    string
		observed  any
		autopilot any
		lossy     []string
	}{
		"Channel":        {"The kind has it.", "RAPID", true, nil},
		"NoChannel":      {"Autopilot alone is refused.", "", nil, []string{"spec.enableAutopilot"}},
		"UnknownChannel": {"The kind does not have it.", "GLACIAL", nil, []string{"spec.enableAutopilot", "spec.releaseChannel"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := loadFixture(t, "gke-autopilot")
			f.Resources[0].AtProvider["releaseChannel"] = map[string]any{"channel": tc.observed}
			facts, reflected := hub.reflect(t, newImport(f), served(reflection.GKE, false, true), f)
			if diff := cmp.Diff([]reflection.Capacity{{Type: "Autopilot", Nodes: 1}}, facts.Capacity); diff != "" || len(facts.NodePools) > 0 || !facts.NodePoolsComplete {
				t.Errorf("capacity: -want, +got:\n%s pools %v, complete %v", diff, facts.NodePools, facts.NodePoolsComplete)
			}
			spec, _ := object(t, reflected, "GCPManagedControlPlane", "prod").Object.Object["spec"].(map[string]any)
			if spec["enableAutopilot"] != tc.autopilot || spec["loggingService"] != nil || spec["monitoringService"] != nil || len(reflected.Objects) != 3 {
				t.Errorf("%s got %d objects, %v", tc.reason, len(reflected.Objects), spec)
			}
			want := []string{"GCPManagedCluster/prod spec.network.subnets[].cidrBlock"}
			for _, field := range append(tc.lossy, "spec.loggingService", "spec.monitoringService") {
				want = append(want, "GCPManagedControlPlane/prod "+field)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, lossyFields(reflected)); diff != "" {
				t.Errorf("lossy: -want, +got:\n%s", diff)
			}
		})
	}
}
