// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"encoding/base64"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// AKS is an Azure cluster, in the subscription of the ProviderConfig.
type AKS struct {
	ResourceGroup, Name, Location string
	// SubscriptionID. Empty: DefaultSubscriptionID.
	SubscriptionID string
	// API is the API server with the user credentials that the provider's identity can get. Admin is the same API server
	// with the cluster administrator's credentials; if Admin has no server, the two are the same.
	API, Admin API
	// EntraID makes it a cluster whose users log in with Entra ID: its kubeconfig runs kubelogin.
	EntraID bool
	// NodePools in addition to the default one, "system", which is in the fixture.
	NodePools []AKSNodePool
	// AtProvider overrides what the provider shows, field by field.
	AtProvider map[string]any
}

// AKSNodePool is a node pool.
type AKSNodePool struct {
	Name  string
	Count int
	// AtProvider overrides what the provider shows, field by field.
	AtProvider map[string]any
}

// AKSClusterID is the ID of a cluster in the subscription DefaultSubscriptionID.
func AKSClusterID(resourceGroup, name string) string {
	return aksClusterID(DefaultSubscriptionID, resourceGroup, name)
}

// AddAKS creates a cluster with its node pools, or replaces it.
func (c *Cloud) AddAKS(cluster AKS) {
	if cluster.SubscriptionID == "" {
		cluster.SubscriptionID = DefaultSubscriptionID
	}
	whole := aksClusterID(cluster.SubscriptionID, cluster.ResourceGroup, cluster.Name)
	group := "MC_" + cluster.ResourceGroup + "_" + cluster.Name + "_" + cluster.Location
	shown := fixture("aks-standard", kindAKSCluster, "shop-prod")
	overlay(shown, map[string]any{
		"id": whole, "location": cluster.Location, "resourceGroupName": cluster.ResourceGroup, "dnsPrefix": cluster.Name,
		"fqdn":              cluster.Name + "-0a1b2c3d.hcp." + cluster.Location + ".azmk8s.io",
		"portalFqdn":        cluster.Name + "-0a1b2c3d.portal.hcp." + cluster.Location + ".azmk8s.io",
		"nodeResourceGroup": group, "nodeResourceGroupId": id("/subscriptions", cluster.SubscriptionID, "resourceGroups", group),
	})
	if cluster.EntraID {
		overlay(shown, map[string]any{"azureActiveDirectoryRoleBasedAccessControl": map[string]any{"azureRbacEnabled": true}})
	}
	overlay(shown, cluster.AtProvider)
	c.add(resourceID{kindAKSCluster, whole}, &cloudResource{atProvider: shown, connection: c.steady(cluster.connection)})
	system := plain(map[string]any{})
	overlay(system, shown["defaultNodePool"].(map[string]any))
	delete(system, "type")
	delete(system, "name")
	overlay(system, map[string]any{"mode": "System", "osType": "Linux", "priority": "Regular"})
	c.addAKSNodePool(whole, "system", system)
	for _, pool := range cluster.NodePools {
		c.AddAKSNodePool(whole, pool)
	}
}

// AddAKSNodePool creates a node pool in the cluster with an ID, or replaces it.
func (c *Cloud) AddAKSNodePool(clusterID string, pool AKSNodePool) {
	shown := fixture("aks-standard", kindAKSNodePool, "apps")
	if pool.Count > 0 {
		overlay(shown, map[string]any{"nodeCount": pool.Count})
	}
	overlay(shown, pool.AtProvider)
	c.addAKSNodePool(clusterID, pool.Name, shown)
}

func (c *Cloud) addAKSNodePool(clusterID, name string, shown map[string]any) {
	whole := id(clusterID, "agentPools", name)
	overlay(shown, map[string]any{"id": whole, "kubernetesClusterId": clusterID})
	c.add(resourceID{kindAKSNodePool, whole}, &cloudResource{atProvider: shown})
}

// ChangeAKS changes the cluster with an ID directly in the cloud. It reports whether the cluster exists.
func (c *Cloud) ChangeAKS(clusterID string, atProvider map[string]any) bool {
	return c.change(resourceID{kindAKSCluster, clusterID}, func(shown map[string]any) { overlay(shown, atProvider) })
}

// RemoveAKSNodePool deletes a node pool directly in the cloud. It reports whether the node pool existed.
func (c *Cloud) RemoveAKSNodePool(clusterID, name string) bool {
	return c.remove(resourceID{kindAKSNodePool, id(clusterID, "agentPools", name)})
}

// connection returns what the provider publishes: the kubeconfig of a user and that of an administrator, or nothing if
// the API has no server.
func (a AKS) connection(ctx context.Context) (map[string][]byte, error) {
	if a.API.Server == "" {
		return map[string][]byte{}, nil
	}
	user, err := a.API.kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	admin := user
	if a.Admin.Server != "" {
		if admin, err = a.Admin.kubeconfig(ctx); err != nil {
			return nil, err
		}
	}
	if a.EntraID {
		login := clientcmdapi.NewAuthInfo()
		login.Exec = &clientcmdapi.ExecConfig{
			APIVersion: "client.authentication.k8s.io/v1beta1", Command: "kubelogin", InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
			Args: []string{"get-token", "--server-id", "6dae42f8-4368-4678-94ff-3960e28e3630"},
		}
		if user, err = a.API.newKubeconfig(login); err != nil {
			return nil, err
		}
	}
	return map[string][]byte{
		"kubeconfig":                      user,
		"kubeconfig.clustercacertificate": []byte(base64.StdEncoding.EncodeToString(a.API.CA)),
		"attribute.kube_config_raw":       user,
		"attribute.kube_admin_config_raw": admin,
	}, nil
}
