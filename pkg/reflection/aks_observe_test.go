// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

const subscription = "6f0b9a3e-1c2d-4e5f-8a9b-0c1d2e3f4a5b"

func TestAKSReflection(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "aks-standard")
	facts, reflected := hub.reflect(t, newImport(f), served(reflection.AKS, false, true), f)
	if !facts.NodePoolsComplete || facts.AKS.AzureAD {
		t.Errorf("complete %v (%s), Entra ID %v", facts.NodePoolsComplete, facts.NodePoolsReason, facts.AKS.AzureAD)
	}
	identity := reflected.Objects[0].Object.GetName()
	for _, c := range []struct{ reason, kind, name, spec string }{
		{"the identity that is denied", "AzureClusterIdentity", identity, `
type: ServicePrincipal
clientID: 00000000-0000-0000-0000-000000000000
tenantID: 00000000-0000-0000-0000-000000000000
clientSecret: {name: ` + identity + `, namespace: team-a}`},
		{"the whole control plane", "AzureManagedControlPlane", "prod", `
apiServerAccessProfile: {enablePrivateCluster: false}
autoUpgradeProfile: {upgradeChannel: patch}
controlPlaneEndpoint: {host: shop-prod-dns-a1b2c3d4.hcp.westeurope.azmk8s.io, port: 443}
dnsPrefix: shop-prod-dns
dnsServiceIP: 10.0.0.10
identity: {type: SystemAssigned}
identityRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, name: ` + identity + `, namespace: team-a}
loadBalancerSKU: Standard
location: westeurope
networkDataplane: cilium
networkPlugin: azure
networkPluginMode: overlay
networkPolicy: cilium
nodeResourceGroupName: MC_shop-rg_shop-prod_westeurope
oidcIssuerProfile: {enabled: true}
outboundType: loadBalancer
resourceGroupName: shop-rg
securityProfile: {workloadIdentity: {enabled: true}}
subscriptionID: ` + subscription + `
version: v1.30.6
virtualNetwork: {name: shop-vnet, resourceGroup: net-rg, subnet: {name: nodes}}`},
		{"the default pool, which the cluster lists", "AzureManagedMachinePool", "prod-system-693fee9423d2", `
availabilityZones: ["1", "2", "3"]
maxPods: 110
mode: System
name: system
nodeLabels: {tier: system}
osDiskSizeGB: 128
osDiskType: Managed
osType: Linux
scaling: {minSize: 3, maxSize: 5}
sku: Standard_D4s_v5
subnetName: nodes
taints: [{key: CriticalAddonsOnly, value: "true", effect: NoSchedule}]`},
		{"a pool that its Nodes show, not autoscaled", "AzureManagedMachinePool", "prod-apps-299481e1a831", `
maxPods: 110
mode: User
name: apps
nodeLabels: {tier: apps}
osDiskSizeGB: 200
osDiskType: Ephemeral
osType: Linux
scaleSetPriority: Regular
sku: Standard_D8s_v5
subnetName: nodes
taints: [{key: dedicated, value: apps, effect: NoSchedule}]`},
		{"a spot pool of Windows", "AzureManagedMachinePool", "prod-win-33d03c2ccafd", `
mode: User
name: win
osDiskSizeGB: 128
osDiskType: Managed
osType: Windows
scaleSetPriority: Spot
scaling: {minSize: 0, maxSize: 10}
sku: Standard_D4s_v5
taints: [{key: kubernetes.azure.com/scalesetpriority, value: spot, effect: NoSchedule}]`},
		{"the MachinePool", "MachinePool", "prod-system-693fee9423d2", `
clusterName: prod
failureDomains: ["1", "2", "3"]
replicas: 3
template:
  spec:
    bootstrap: {dataSecretName: ""}
    clusterName: prod
    infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: AzureManagedMachinePool, name: prod-system-693fee9423d2}
    version: v1.30.6`},
	} {
		checkSpec(t, c.reason, object(t, reflected, c.kind, c.name), c.spec)
	}
	if diff := cmp.Diff([]string{
		"AzureManagedControlPlane/prod spec.sku.tier",
		"AzureManagedControlPlane/prod spec.virtualNetwork.cidrBlock",
		"AzureManagedControlPlane/prod spec.virtualNetwork.subnet.cidrBlock",
		"AzureManagedMachinePool/prod-apps-299481e1a831 spec.osSKU",
		"AzureManagedMachinePool/prod-system-693fee9423d2 spec.osSKU",
		"AzureManagedMachinePool/prod-win-33d03c2ccafd spec.nodeLabels",
		"AzureManagedMachinePool/prod-win-33d03c2ccafd spec.osSKU",
	}, lossyFields(reflected)); diff != "" {
		t.Errorf("lossy: -want, +got:\n%s", diff)
	}
	for _, l := range reflected.Lossy {
		if l.Field == "spec.sku.tier" && (l.Observed != "Premium" || l.Default != "Free") {
			t.Errorf("the tier that cannot be represented: got %+v", l)
		}
	}
}

func TestAKSPrivate(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "aks-private")
	facts, reflected := hub.reflect(t, newImport(f), served(reflection.AKS, false, true), f)
	if !facts.Endpoint.Private || !facts.AKS.AzureAD || facts.Endpoint.Host != "ledger-abcd1234.0f1e2d3c-0000-1111-2222-333344445555.privatelink.northeurope.azmk8s.io" {
		t.Errorf("endpoint %+v, Entra ID %v", facts.Endpoint, facts.AKS.AzureAD)
	}
	if diff := cmp.Diff([]reflection.Capacity{{Type: "VirtualNode", Nodes: 1}}, facts.Capacity); diff != "" {
		t.Errorf("capacity: -want, +got:\n%s", diff)
	}
	spec, _ := object(t, reflected, "AzureManagedControlPlane", "prod").Object.Object["spec"].(map[string]any)
	if diff := cmp.Diff(map[string]any{"managed": true, "adminGroupObjectIDs": []any{"11111111-aaaa-bbbb-cccc-222222222222"}}, spec["aadProfile"]); diff != "" {
		t.Errorf("Entra ID: -want, +got:\n%s", diff)
	}
	if _, ok := spec["outboundType"]; ok {
		t.Error("outboundType none has no value in the kind, yet it is set")
	}
	if diff := cmp.Diff([]string{
		"AzureManagedControlPlane/prod spec.outboundType", "AzureManagedControlPlane/prod spec.virtualNetwork.name",
	}, lossyFields(reflected)); diff != "" {
		t.Errorf("lossy: -want, +got:\n%s", diff)
	}
}

// TestAKSFieldsOfBothProviders: azurerm 4 gave fields other names, which the pinned provider does not have.
func TestAKSFieldsOfBothProviders(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	f := loadFixture(t, "aks-standard")
	imp := newImport(f)
	read := func(namespaced bool) reflection.Facts {
		t.Helper()
		facts, _ := hub.reflect(t, imp, served(reflection.AKS, namespaced, !namespaced), f)
		facts.Lossy = nil // Newer providers have no taints of the default pool.
		return facts
	}
	facts := read(false)
	if diff := cmp.Diff(facts, read(true)); diff != "" {
		t.Errorf("-with the names of azurerm 3, +with those of azurerm 4:\n%s", diff)
	}
	if facts.AKS.UpgradeChannel == "" || facts.NodePools[0].Autoscaled == nil {
		t.Errorf("the fields are not read: %+v", facts)
	}
	// The provider is updated, and what is known of its schema is of the version before, or nothing.
	for _, namespaced := range []bool{false, true} {
		observed, _ := hub.observe(t, imp, served(reflection.AKS, namespaced, !namespaced), f, true)
		for reason, schemas := range map[string]reflection.Schemas{"unknown": nil, "another": {
			reflection.AKSCluster.Namespaced():  hub.schemas[reflection.AKSCluster.Legacy()],
			reflection.AKSNodePool.Namespaced(): hub.schemas[reflection.AKSNodePool.Legacy()],
			reflection.AKSCluster.Legacy():      hub.schemas[reflection.AKSCluster.Namespaced()],
			reflection.AKSNodePool.Legacy():     hub.schemas[reflection.AKSNodePool.Namespaced()],
		}} {
			now, err := reflection.Read(imp, schemas, observed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(facts.NodePools, now.NodePools); diff != "" || now.AKS.UpgradeChannel != facts.AKS.UpgradeChannel {
				t.Errorf("with a schema that is %s: %s", reason, diff)
			}
		}
	}
	without := func(name string) reflection.Observed {
		observed, _ := hub.observe(t, imp, served(reflection.AKS, false, true), f, true)
		for _, field := range []observedField{{reflection.AKSCluster, "defaultNodePool." + name}, {reflection.AKSNodePool, name}} {
			observed = prune(observed, field)
		}
		return observed
	}
	now, err := reflection.Read(imp, hub.schemas, without("enableAutoScaling"))
	if err != nil {
		t.Fatal(err)
	}
	var lossy []string
	for _, l := range now.Lossy {
		lossy = append(lossy, l.Field)
	}
	if diff := cmp.Diff([]string{"KubernetesCluster.defaultNodePool.maxCount", "KubernetesClusterNodePool/win.maxCount"}, slices.Compact(slices.Sorted(slices.Values(lossy)))); diff != "" {
		t.Errorf("lossy: -want, +got:\n%s", diff)
	}
}

// TestAKSPoolsAreLookedUpUnderTheirClusterOnly shows that an observation cannot send the provider to another cluster.
func TestAKSPoolsAreLookedUpUnderTheirClusterOnly(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	own := "/subscriptions/" + subscription + "/resourceGroups/shop-rg/providers/Microsoft.ContainerService/managedClusters/"
	for reason, id := range map[string]string{
		"another cluster's identifier": own + "other",
		"a path that goes on":          own + "shop-prod/agentPools/system",
		"a path that goes up":          own + "x/../shop-prod",
		"nothing":                      "",
	} {
		f := loadFixture(t, "aks-standard")
		f.Resources[0].AtProvider["id"] = id
		imp := newImport(f)
		observed, want := hub.observe(t, imp, served(reflection.AKS, false, true), f, true)
		if len(want.Resources) != 1 {
			t.Errorf("%s: pools are wanted under it", reason)
		}
		if _, err := reflection.Read(imp, hub.schemas, observed); err == nil {
			t.Errorf("%s: it is read", reason)
		}
	}
}

// TestAKSLayoutsThatTheProvidersWebhookRefused: Cluster API Provider Azure refuses what AKS permits in these layouts.
// It is left out, and said so.
func TestAKSLayoutsThatTheProvidersWebhookRefused(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	type fields = map[string]any
	entra := func(groups ...any) fields { return fields{"azureRbacEnabled": true, "adminGroupObjectIds": groups} }
	for name, tc := range map[string]struct {
		cluster, network fields
		// spec has the fields of the control plane in question; nil is for one that is left out.
		spec  fields
		lossy []string
	}{
		"Plain":              {spec: fields{"disableLocalAccounts": nil, "aadProfile": nil, "networkDataplane": "cilium", "dnsServiceIP": "10.0.0.10"}},
		"NotEntra":           {cluster: fields{"azureActiveDirectoryRoleBasedAccessControl": fields{"managed": false}}, spec: fields{"disableLocalAccounts": nil, "aadProfile": nil}},
		"EntraWithoutGroups": {cluster: fields{"azureActiveDirectoryRoleBasedAccessControl": entra()}, spec: fields{"disableLocalAccounts": nil, "aadProfile": nil}, lossy: []string{"spec.aadProfile"}},
		"EntraWithGroups": {
			cluster: fields{"azureActiveDirectoryRoleBasedAccessControl": entra("11111111-aaaa-bbbb-cccc-222222222222"), "localAccountDisabled": true},
			spec: fields{
				"disableLocalAccounts": true, "aadProfile": fields{"managed": true, "adminGroupObjectIDs": []any{"11111111-aaaa-bbbb-cccc-222222222222"}},
			},
		},
		"CiliumOfPodSubnets": {network: fields{"networkPluginMode": ""}, spec: fields{"networkDataplane": nil}, lossy: []string{"spec.networkDataplane"}},
		"CiliumWithoutRules": {network: fields{"networkPolicy": ""}, spec: fields{"networkDataplane": nil}, lossy: []string{"spec.networkDataplane"}},
		"DNSElsewhere":       {network: fields{"dnsServiceIp": "10.0.0.53"}, spec: fields{"dnsServiceIP": nil}, lossy: []string{"spec.dnsServiceIP"}},
		"DNSOfAnotherBlock":  {network: fields{"dnsServiceIp": "10.9.0.10"}, spec: fields{"dnsServiceIP": nil}, lossy: []string{"spec.dnsServiceIP"}},
		"DualStack": {
			network: fields{"serviceCidrs": []any{"10.0.0.0/16", "fd00::/108"}}, spec: fields{"dnsServiceIP": "10.0.0.10"},
			lossy: []string{"spec.clusterNetwork.services.cidrBlocks"},
		},
		"TwoIdentities": {
			cluster: fields{"identity": fields{"type": "SystemAssigned", "identityIds": []any{"/subscriptions/a/id"}}},
			spec:    fields{"identity": fields{"type": "SystemAssigned"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := loadFixture(t, "aks-standard")
			i := slices.IndexFunc(f.Resources, func(r layouts.Resource) bool { return r.Kind == "KubernetesCluster" })
			shown := f.Resources[i].AtProvider
			maps.Copy(shown, tc.cluster)
			maps.Copy(shown["networkProfile"].(map[string]any), tc.network)
			_, reflected := hub.reflect(t, newImport(f), served(reflection.AKS, false, true), f)
			plane := object(t, reflected, "AzureManagedControlPlane", "prod")
			spec, _ := plane.Object.Object["spec"].(map[string]any)
			for field, want := range tc.spec {
				if diff := cmp.Diff(want, spec[field]); diff != "" {
					t.Errorf("%s: -want, +got:\n%s", field, diff)
				}
			}
			for _, field := range tc.lossy {
				if !slices.ContainsFunc(reflected.Lossy, func(l reflection.Lossy) bool { return l.Field == field }) {
					t.Errorf("want it to be said that %s is lossy, got %v", field, lossyFields(reflected))
				}
			}
			if label, found := plane.Object.GetLabels()[clusterv1.ClusterNameLabel]; found {
				t.Errorf("the webhook would require the Cluster %q, which is created last", label)
			}
			services, _, _ := unstructured.NestedSlice(object(t, reflected, "Cluster", "prod").Object.Object, "spec", "clusterNetwork", "services", "cidrBlocks")
			if len(services) != 1 {
				t.Errorf("want one CIDR block, got %v", services)
			}
		})
	}
}

// TestAKSEndpoint: a private cluster is reached by its private name, unless the import says otherwise.
func TestAKSEndpoint(t *testing.T) {
	t.Parallel()
	hub := readHub(t)
	const public, private = "shop.hcp.westeurope.azmk8s.io", "shop.privatelink.westeurope.azmk8s.io"
	for name, tc := range map[string]struct {
		public, private     string
		isPrivate, asPublic bool
		want                string
	}{
		"Public":           {public: public, want: public},
		"Private":          {public: public, private: private, isPrivate: true, want: private},
		"PrivateByItsName": {public: public, private: private, isPrivate: true, asPublic: true, want: public},
		"NoPublicName":     {private: private, isPrivate: true, asPublic: true, want: private},
		"PrivateName":      {public: public, isPrivate: true, want: public},
		"PublicInAnyCase":  {public: public, private: private, asPublic: true, want: public},
		"OnlyAPrivateName": {private: private, want: private},
	} {
		f := loadFixture(t, "aks-private")
		i := slices.IndexFunc(f.Resources, func(r layouts.Resource) bool { return r.Kind == "KubernetesCluster" })
		maps.Copy(f.Resources[i].AtProvider, map[string]any{"fqdn": tc.public, "privateFqdn": tc.private, "privateClusterEnabled": tc.isPrivate})
		imp := newImport(f)
		imp.PublicName = tc.asPublic
		facts, _ := hub.reflect(t, imp, served(reflection.AKS, false, true), f)
		if e := facts.Endpoint; e.Host != tc.want || e.Private != tc.isPrivate {
			t.Errorf("%s: want %q, got %+v", name, tc.want, e)
		}
	}
}
