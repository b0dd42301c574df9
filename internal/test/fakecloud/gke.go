// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"fmt"
	"strings"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// GKE is a Google cluster, in the project of the ProviderConfig.
type GKE struct {
	// Location is a region or a zone.
	Location, Name string
	// Project. Empty: DefaultProjectID.
	Project   string
	API       API
	Autopilot bool
	NodePools []GKENodePool
	// AtProvider overrides what the provider shows, field by field.
	AtProvider map[string]any
}

// GKENodePool is a node pool. A cluster also shows its pools itself.
type GKENodePool struct {
	Name string
	// NodesPerZone is its size in each of its zones. 0: 1.
	NodesPerZone int
	// Zones. None: one, in the cluster's location.
	Zones []string
	// Taints as "key=value:NO_SCHEDULE".
	Taints []string
	Labels map[string]string
	// AtProvider overrides what the provider shows, field by field.
	AtProvider map[string]any
}

// AddGKE creates a cluster with its node pools, or replaces it.
func (c *Cloud) AddGKE(cluster GKE) {
	if cluster.Project == "" {
		cluster.Project = DefaultProjectID
	}
	shown := fixture("gke-regional", kindGKECluster, "shop-prod")
	overlay(shown, map[string]any{
		"id":       id("projects", cluster.Project, "locations", cluster.Location, "clusters", cluster.Name),
		"location": cluster.Location, "project": cluster.Project, "enableAutopilot": cluster.Autopilot,
		"endpoint":   strings.TrimPrefix(cluster.API.endpoint("https://203.0.113.10"), "https://"),
		"masterAuth": map[string]any{"clusterCaCertificate": cluster.API.authority()},
		"nodePool":   []any{},
	}, cluster.AtProvider)
	c.add(resourceID{kindGKECluster, id(cluster.Project, cluster.Location, cluster.Name)}, &cloudResource{
		atProvider: shown, connection: cluster.connection,
	})
	for _, pool := range cluster.NodePools {
		c.AddGKENodePool(cluster.Project, cluster.Location, cluster.Name, pool)
	}
}

// connection returns what the provider publishes: a kubeconfig without credentials.
func (g GKE) connection(context.Context) (map[string][]byte, error) {
	if g.API.Server == "" {
		return map[string][]byte{}, nil
	}
	kubeconfig, err := g.API.newKubeconfig(clientcmdapi.NewAuthInfo())
	return map[string][]byte{"kubeconfig": kubeconfig}, err
}

// AddGKENodePool creates a node pool in an existing cluster, or replaces it. An empty project is DefaultProjectID.
func (c *Cloud) AddGKENodePool(project, location, cluster string, pool GKENodePool) {
	if project == "" {
		project = DefaultProjectID
	}
	if pool.NodesPerZone == 0 {
		pool.NodesPerZone = 1
	}
	if len(pool.Zones) == 0 {
		pool.Zones = []string{location + "-a"}
	}
	taints := []any{}
	for _, taint := range pool.Taints {
		keyValue, effect, _ := strings.Cut(taint, ":")
		key, value, _ := strings.Cut(keyValue, "=")
		taints = append(taints, map[string]any{"key": key, "value": value, "effect": effect})
	}
	var groups []string
	for _, zone := range pool.Zones {
		groups = append(groups, "https://www.googleapis.com/compute/v1/"+
			id("projects", project, "zones", zone, "instanceGroupManagers", "gke-"+cluster+"-"+pool.Name))
	}
	shown := gkeNodePool()
	overlay(shown, map[string]any{
		"nodeCount": pool.NodesPerZone, "nodeLocations": pool.Zones, "managedInstanceGroupUrls": groups,
		"nodeConfig": map[string]any{"taint": taints, "labels": pool.Labels},
	}, pool.AtProvider)
	inCluster := plain(shown)
	overlay(inCluster, map[string]any{"name": pool.Name})
	if !c.change(resourceID{kindGKECluster, id(project, location, cluster)}, func(atProvider map[string]any) {
		atProvider["nodePool"] = append(without(atProvider["nodePool"], pool.Name), inCluster)
	}) {
		panic(fmt.Sprintf("there is no GKE cluster %q in %s", cluster, location))
	}
	overlay(shown, map[string]any{
		"id":       id("projects", project, "locations", location, "clusters", cluster, "nodePools", pool.Name),
		"location": location, "project": project, "cluster": cluster,
	})
	c.add(resourceID{kindGKENodePool, id(project, location, cluster, pool.Name)}, &cloudResource{atProvider: shown})
}

// gkeNodePool returns the first pool of the cluster in the fixture.
func gkeNodePool() map[string]any {
	pools, _ := fixture("gke-regional", kindGKECluster, "shop-prod")["nodePool"].([]any)
	pool, _ := pools[0].(map[string]any)
	return pool
}

// ChangeGKE changes a cluster directly in the cloud. It reports whether the cluster exists. An empty project is
// DefaultProjectID.
func (c *Cloud) ChangeGKE(project, location, name string, atProvider map[string]any) bool {
	if project == "" {
		project = DefaultProjectID
	}
	return c.change(resourceID{kindGKECluster, id(project, location, name)}, func(shown map[string]any) { overlay(shown, atProvider) })
}

// RemoveGKENodePool deletes a node pool directly in the cloud. It reports whether the node pool existed.
func (c *Cloud) RemoveGKENodePool(project, location, cluster, name string) bool {
	if project == "" {
		project = DefaultProjectID
	}
	c.change(resourceID{kindGKECluster, id(project, location, cluster)}, func(atProvider map[string]any) {
		atProvider["nodePool"] = without(atProvider["nodePool"], name)
	})
	return c.remove(resourceID{kindGKENodePool, id(project, location, cluster, name)})
}

// without returns a list of node pools except the one with the given name.
func without(pools any, name string) []any {
	kept := []any{}
	list, _ := pools.([]any)
	for _, pool := range list {
		if fields, ok := pool.(map[string]any); !ok || fields["name"] != name {
			kept = append(kept, pool)
		}
	}
	return kept
}
