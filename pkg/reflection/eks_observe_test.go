// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

func TestEKSReflection(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-standard")
	imp := newImport(f)
	imp.NodePools = []string{"Spot_Batch"}
	facts, reflected := hub.reflect(t, imp, served(reflection.EKS, false, true), f)
	if !facts.NodePoolsComplete {
		t.Errorf("node pools are not complete: %s", facts.NodePoolsReason)
	}
	spot := reflection.PoolName("prod", "Spot_Batch")
	for _, c := range []struct{ reason, kind, name, spec string }{
		{"the endpoint has no scheme", "AWSManagedCluster", "prod", `
controlPlaneEndpoint: {host: 8C3F0B1D2E4A5968778695A4B3C2D1E0.gr7.eu-central-1.eks.amazonaws.com, port: 443}`},
		{"a pool on demand", "AWSManagedMachinePool", "prod-general-546c23de223c", `
eksNodegroupName: general
amiType: AL2023_x86_64_STANDARD
availabilityZones: [eu-central-1a, eu-central-1b]
capacityType: onDemand
diskSize: 50
instanceType: m6i.xlarge
labels: {workload: general}
roleName: shop-prod-nodes
scaling: {minSize: 2, maxSize: 6}
subnetIDs: [subnet-0aaaaaaaaaaaaaaa1, subnet-0aaaaaaaaaaaaaaa2]`},
		{"a spot pool with several types and taints", "AWSManagedMachinePool", spot, `
eksNodegroupName: Spot_Batch
amiType: BOTTLEROCKET_x86_64
availabilityZones: [eu-central-1a]
capacityType: spot
diskSize: 20
instanceType: c6i.2xlarge
roleName: shop-prod-nodes
scaling: {minSize: 0, maxSize: 20}
subnetIDs: [subnet-0aaaaaaaaaaaaaaa1]
taints:
- {key: batch, value: "true", effect: no-schedule}
- {key: spot, value: "", effect: prefer-no-schedule}`},
		{"the MachinePool takes its version from the release", "MachinePool", "prod-general-546c23de223c", `
clusterName: prod
failureDomains: [eu-central-1a, eu-central-1b]
replicas: 3
template:
  spec:
    bootstrap: {dataSecretName: ""}
    clusterName: prod
    infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSManagedMachinePool, name: prod-general-546c23de223c}
    version: v1.31.3`},
		{"an image of the user's has no release: the kubelet tells", "MachinePool", "prod-hardened-33d59a0e2e20", `
clusterName: prod
failureDomains: [eu-central-1b]
replicas: 1
template:
  spec:
    bootstrap: {dataSecretName: ""}
    clusterName: prod
    infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSManagedMachinePool, name: prod-hardened-33d59a0e2e20}
    version: v1.31.2`},
		{"the Cluster refers to all of it", "Cluster", "prod", `
clusterNetwork: {services: {cidrBlocks: [172.20.0.0/16]}}
controlPlaneEndpoint: {host: 8C3F0B1D2E4A5968778695A4B3C2D1E0.gr7.eu-central-1.eks.amazonaws.com, port: 443}
controlPlaneRef: {apiGroup: controlplane.cluster.x-k8s.io, kind: AWSManagedControlPlane, name: prod}
infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AWSManagedCluster, name: prod}`},
	} {
		checkSpec(t, c.reason, object(t, reflected, c.kind, c.name), c.spec)
	}
	if got := object(t, reflected, "AWSManagedMachinePool", spot).Object.GetAnnotations()[reflection.ObservedInstanceTypesAnnotation]; got != "c6i.2xlarge,c6a.2xlarge,c5.2xlarge" {
		t.Errorf("instance types of the spot pool: got %q", got)
	}
	// The fields that cannot be represented are reported, and no others.
	if diff := cmp.Diff([]string{
		"AWSManagedControlPlane/prod spec.network.securityGroupOverrides",
		"AWSManagedControlPlane/prod spec.network.subnets[].isPublic",
		"AWSManagedMachinePool/prod-hardened-33d59a0e2e20 spec.awsLaunchTemplate",
		"AWSManagedMachinePool/" + spot + " spec.instanceType",
	}, lossyFields(reflected)); diff != "" {
		t.Errorf("lossy: -want, +got:\n%s", diff)
	}
}

// checkSpec compares the spec with YAML.
func checkSpec(t *testing.T, reason string, o reflection.Object, want string) {
	t.Helper()
	var spec any
	if err := yaml.Unmarshal([]byte(want), &spec); err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.Marshal(o.Object.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := yaml.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, got); diff != "" {
		t.Errorf("%s: %s %q: -want, +got:\n%s", reason, o.Object.GetKind(), o.Object.GetName(), diff)
	}
}

func TestEKSControlPlane(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-standard")
	imp := newImport(f)
	imp.Subnets = []reflection.SubnetHint{{ID: "subnet-0aaaaaaaaaaaaaaa2", Public: new(false)}, {ID: "subnet-0bbbbbbbbbbbbbbb2", RouteTableID: "rtb-0000000000000000b"}}
	_, reflected := hub.reflect(t, imp, served(reflection.EKS, true, false), f)
	identity := reflected.Objects[0]
	if identity.Role != reflection.RoleIdentity || identity.Object.GetNamespace() != "" {
		t.Fatalf("the first object is %s %q, not the identity that is denied", identity.Role, identity.Object.GetName())
	}
	checkSpec(t, "the whole control plane", object(t, reflected, "AWSManagedControlPlane", "prod"), `
accessConfig: {authenticationMode: api_and_config_map}
bootstrapSelfManagedAddons: true
controlPlaneEndpoint: {host: 8C3F0B1D2E4A5968778695A4B3C2D1E0.gr7.eu-central-1.eks.amazonaws.com, port: 443}
eksClusterName: shop-prod
encryptionConfig:
  provider: arn:aws:kms:eu-central-1:111122223333:key/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0
  resources: [secrets]
endpointAccess: {private: true, public: true, publicCIDRs: [203.0.113.0/24]}
identityRef: {kind: AWSClusterStaticIdentity, name: `+identity.Object.GetName()+`}
logging: {apiServer: true, audit: true, authenticator: false, controllerManager: false, scheduler: false}
network:
  securityGroupOverrides: {controlplane: sg-0fedcba9876543210}
  subnets:
  - {id: subnet-0aaaaaaaaaaaaaaa1, availabilityZone: eu-central-1a, cidrBlock: 10.40.0.0/20, isPublic: false}
  - {id: subnet-0aaaaaaaaaaaaaaa2, availabilityZone: eu-central-1b, cidrBlock: 10.40.16.0/20, isPublic: false}
  - {id: subnet-0bbbbbbbbbbbbbbb1, availabilityZone: eu-central-1a, cidrBlock: 10.40.240.0/24, isPublic: true}
  - {id: subnet-0bbbbbbbbbbbbbbb2, availabilityZone: eu-central-1b, cidrBlock: 10.40.241.0/24, isPublic: true, routeTableId: rtb-0000000000000000b}
  vpc: {id: vpc-0a1b2c3d4e5f60718, cidrBlock: 10.40.0.0/16}
region: eu-central-1
roleName: shop-prod-cluster
upgradePolicy: extended
version: "1.31"`)
}

func TestEKSAutoMode(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-auto")
	imp := newImport(f)
	imp.FargateProfiles = []string{"jobs"}
	facts, reflected := hub.reflect(t, imp, served(reflection.EKS, false, true), f)
	if diff := cmp.Diff([]reflection.Capacity{
		{Type: "AutoMode", Name: "general-purpose", Nodes: 1},
		{Type: "AutoMode", Name: "system"},
		{Type: "Fargate", Nodes: 1},
		{Type: "Fargate", Name: "jobs"},
		{Type: "Hybrid", Nodes: 1},
		{Type: "Karpenter", Name: "gpu", Nodes: 1},
	}, facts.Capacity); diff != "" {
		t.Errorf("capacity: -want, +got:\n%s", diff)
	}
	if !facts.Endpoint.Private || len(facts.NodePools) > 0 || !facts.NodePoolsComplete {
		t.Errorf("facts: private %v, pools %v, complete %v", facts.Endpoint.Private, facts.NodePools, facts.NodePoolsComplete)
	}
	if len(reflected.Objects) != 4 {
		t.Errorf("got %d objects, want an identity, a cluster, a control plane and a Cluster", len(reflected.Objects))
	}
}

func TestReadRefusesAnotherCluster(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "eks-standard")
	imp := newImport(f)
	for _, c := range []struct {
		reason string
		change func(map[string]any)
		want   error
	}{
		{"the cluster of another region", func(at map[string]any) { at["arn"] = "arn:aws:eks:us-east-1:111122223333:cluster/shop-prod" }, nil},
		{"another cluster", func(at map[string]any) { at["arn"] = "arn:aws:eks:eu-central-1:111122223333:cluster/shop" }, nil},
		{"an endpoint with a path", func(at map[string]any) { at["endpoint"] = "https://example.com/proxy" }, nil},
		{"an endpoint with credentials", func(at map[string]any) { at["endpoint"] = "https://a:b@example.com" }, nil},
		{"an endpoint that is not encrypted", func(at map[string]any) { at["endpoint"] = "http://example.com" }, nil},
		{"a cluster that is being created has no endpoint", func(at map[string]any) { delete(at, "endpoint") }, reflection.ErrNotObserved},
	} {
		changed := loadFixture(t, "eks-standard")
		c.change(changed.Resources[0].AtProvider)
		observed, _ := hub.observe(t, imp, served(reflection.EKS, true, false), changed, true)
		_, err := reflection.Read(imp, hub.schemas, observed)
		if err == nil || errors.Is(err, reflection.ErrNotObserved) != (c.want != nil) {
			t.Errorf("%s: got error %v", c.reason, err)
		}
	}
	if _, err := reflection.Read(imp, hub.schemas, reflection.Observed{}); !errors.Is(err, reflection.ErrNotObserved) {
		t.Errorf("nothing is observed: got error %v", err)
	}
}
