// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const awsAccount = "123456789012"

// EKS is an Amazon cluster.
type EKS struct {
	Region, Name string
	// Version is the minor version of Kubernetes. Empty: "1.31".
	Version string
	API     API
	// Tags of the cluster, in addition to those of the fixture.
	Tags       map[string]string
	NodeGroups []NodeGroup
	// Subnets of the cluster. None: one public and one private.
	Subnets []Subnet
	// AutoMode: Amazon runs the nodes.
	AutoMode bool
	// Fargate are the names of Fargate profiles.
	Fargate []string
	// AtProvider overrides what the provider shows, field by field.
	AtProvider map[string]any
}

// NodeGroup is a managed node group.
type NodeGroup struct {
	Name string
	// Min, Desired and Max are its size. All 0: 1, 2 and 4.
	Min, Desired, Max int
	Labels            map[string]string
	// Taints as "key=value:NO_SCHEDULE".
	Taints []string
	// AtProvider overrides what the provider shows, field by field.
	AtProvider map[string]any
}

// Subnet is a subnet of the VPC. Its own route table leads to the internet if it is public.
type Subnet struct {
	ID, Zone, CIDR string
	Public         bool
}

// AddEKS creates a cluster with its VPC, subnets, route tables and node groups, or replaces it. A subnet's route table
// has the ID of the subnet with "rtb" for "subnet"; the main one of the VPC is "rtb-main-<cluster>".
func (c *Cloud) AddEKS(cluster EKS) {
	if cluster.Version == "" {
		cluster.Version = "1.31"
	}
	if len(cluster.Subnets) == 0 {
		cluster.Subnets = []Subnet{
			{ID: "subnet-" + cluster.Name + "-public", Zone: cluster.Region + "a", CIDR: "10.20.0.0/20", Public: true},
			{ID: "subnet-" + cluster.Name + "-private", Zone: cluster.Region + "b", CIDR: "10.20.16.0/20"},
		}
	}
	vpc := "vpc-" + cluster.Name
	var subnets []string
	for _, subnet := range cluster.Subnets {
		subnets = append(subnets, subnet.ID)
		c.addSubnet(cluster.Region, vpc, subnet)
	}
	c.addVPC(cluster.Region, vpc, "rtb-main-"+cluster.Name)
	shown := fixture("eks-standard", kindEKSCluster, "shop-prod")
	overlay(shown, map[string]any{
		"id": cluster.Name, "clusterId": "", "region": cluster.Region, "version": cluster.Version,
		"arn":                  awsARN("eks", cluster.Region, "cluster/"+cluster.Name),
		"endpoint":             cluster.API.endpoint("https://0123456789ABCDEF." + cluster.Region + ".eks.invalid"),
		"certificateAuthority": []any{map[string]any{"data": cluster.API.authority()}},
		"vpcConfig":            map[string]any{"vpcId": vpc, "subnetIds": subnets},
		"tags":                 cluster.Tags, "tagsAll": cluster.Tags,
		"computeConfig": map[string]any{"enabled": cluster.AutoMode},
	}, cluster.AtProvider)
	c.add(resourceID{kindEKSCluster, id(cluster.Region, cluster.Name)}, &cloudResource{
		atProvider: shown,
		// The Cluster itself publishes nothing; a ClusterAuth requests this.
		connection: func(ctx context.Context) (map[string][]byte, error) {
			kubeconfig, err := cluster.API.kubeconfig(ctx)
			if err != nil {
				return nil, err
			}
			return map[string][]byte{"kubeconfig": kubeconfig, "endpoint": []byte(cluster.API.Server), "clusterCA": cluster.API.CA}, nil
		},
	})
	for _, group := range cluster.NodeGroups {
		c.AddNodeGroup(cluster.Region, cluster.Name, group)
	}
	for _, profile := range cluster.Fargate {
		c.add(resourceID{kindEKSFargate, id(cluster.Region, cluster.Name, profile)}, &cloudResource{atProvider: plain(map[string]any{
			"id": cluster.Name + ":" + profile, "clusterName": cluster.Name, "region": cluster.Region, "status": "ACTIVE",
			"arn":                 awsARN("eks", cluster.Region, "fargateprofile/"+cluster.Name+"/"+profile),
			"podExecutionRoleArn": "arn:aws:iam::" + awsAccount + ":role/fargate", "subnetIds": subnets,
			"selector": []any{map[string]any{"namespace": "default"}},
		})})
	}
}

// AddNodeGroup creates a node group in an existing cluster, or replaces it.
func (c *Cloud) AddNodeGroup(region, cluster string, group NodeGroup) {
	if group.Min == 0 && group.Desired == 0 && group.Max == 0 {
		group.Min, group.Desired, group.Max = 1, 2, 4
	}
	var subnets []any
	version := ""
	if !c.change(resourceID{kindEKSCluster, id(region, cluster)}, func(atProvider map[string]any) {
		config, _ := atProvider["vpcConfig"].(map[string]any)
		subnets, _ = config["subnetIds"].([]any)
		version, _ = atProvider["version"].(string)
	}) {
		panic(fmt.Sprintf("there is no EKS cluster %q in %s", cluster, region))
	}
	taints := []any{}
	for _, taint := range group.Taints {
		keyValue, effect, _ := strings.Cut(taint, ":")
		key, value, _ := strings.Cut(keyValue, "=")
		taints = append(taints, map[string]any{"key": key, "value": value, "effect": effect})
	}
	shown := fixture("eks-standard", kindEKSNodeGroup, "general")
	overlay(shown, map[string]any{
		"id": cluster + ":" + group.Name, "clusterName": cluster, "region": region, "version": version,
		"arn":           awsARN("eks", region, "nodegroup/"+cluster+"/"+group.Name+"/12345678"),
		"scalingConfig": map[string]any{"minSize": group.Min, "desiredSize": group.Desired, "maxSize": group.Max},
		"labels":        group.Labels, "taint": taints, "subnetIds": slices.Clone(subnets),
		"resources": []any{map[string]any{"autoscalingGroups": []any{map[string]any{"name": "eks-" + group.Name + "-0a1b2c3d"}}}},
	}, group.AtProvider)
	c.add(resourceID{kindEKSNodeGroup, id(region, cluster, group.Name)}, &cloudResource{atProvider: shown})
}

// RemoveNodeGroup deletes a node group directly in the cloud. It reports whether the node group existed.
func (c *Cloud) RemoveNodeGroup(region, cluster, name string) bool {
	return c.remove(resourceID{kindEKSNodeGroup, id(region, cluster, name)})
}

// RemoveEKS deletes a cluster with its node groups and Fargate profiles directly in the cloud.
func (c *Cloud) RemoveEKS(region, name string) {
	whole := id(region, name)
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.resources, func(resource resourceID, _ *cloudResource) bool {
		return resource == resourceID{kindEKSCluster, whole} ||
			(resource.kind == kindEKSNodeGroup || resource.kind == kindEKSFargate) && belongsTo(resource.id, whole)
	})
}

// ChangeEKS changes a cluster directly in the cloud: its version, for example.
func (c *Cloud) ChangeEKS(region, name string, atProvider map[string]any) bool {
	return c.change(resourceID{kindEKSCluster, id(region, name)}, func(shown map[string]any) { overlay(shown, atProvider) })
}

func (c *Cloud) addVPC(region, vpc, mainRouteTable string) {
	shown := fixture("eks-standard", kindVPC, "vpc-0a1b2c3d4e5f60718")
	overlay(shown, map[string]any{
		"id": vpc, "region": region, "arn": awsARN("ec2", region, "vpc/"+vpc), "mainRouteTableId": mainRouteTable,
	})
	c.add(resourceID{kindVPC, id(region, vpc)}, &cloudResource{atProvider: shown})
	c.addRouteTable(region, vpc, mainRouteTable, map[string]any{"cidrBlock": "0.0.0.0/0", "natGatewayId": "nat-0a1b2c3d"})
}

func (c *Cloud) addSubnet(region, vpc string, subnet Subnet) {
	c.add(resourceID{kindSubnet, id(region, subnet.ID)}, &cloudResource{atProvider: plain(map[string]any{
		"id": subnet.ID, "region": region, "arn": awsARN("ec2", region, "subnet/"+subnet.ID), "vpcId": vpc,
		"availabilityZone": subnet.Zone, "cidrBlock": subnet.CIDR, "mapPublicIpOnLaunch": subnet.Public, "ownerId": awsAccount,
	})})
	route := map[string]any{"cidrBlock": "0.0.0.0/0", "natGatewayId": "nat-0a1b2c3d"}
	if subnet.Public {
		route = map[string]any{"cidrBlock": "0.0.0.0/0", "gatewayId": "igw-0a1b2c3d"}
	}
	c.addRouteTable(region, vpc, strings.Replace(subnet.ID, "subnet-", "rtb-", 1), route)
}

func (c *Cloud) addRouteTable(region, vpc, name string, route map[string]any) {
	c.add(resourceID{kindRouteTable, id(region, name)}, &cloudResource{atProvider: plain(map[string]any{
		"id": name, "region": region, "arn": awsARN("ec2", region, "route-table/"+name), "vpcId": vpc, "ownerId": awsAccount, "route": []any{route},
	})})
}

func awsARN(service, region, resource string) string {
	return "arn:aws:" + service + ":" + region + ":" + awsAccount + ":" + resource
}

// overlay overrides the fields of an object with those of others. Objects are merged, everything else is replaced.
func overlay(shown map[string]any, over ...map[string]any) {
	for _, fields := range over {
		merge(shown, plain(fields))
	}
}

func merge(into, from map[string]any) {
	for key, value := range from {
		inner, isObject := value.(map[string]any)
		existing, wasObject := into[key].(map[string]any)
		switch {
		case value == nil:
			// A Go map that is not set overrides nothing.
		case isObject && wasObject:
			merge(existing, inner)
		default:
			into[key] = value
		}
	}
}
