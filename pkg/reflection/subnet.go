// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import "strings"

// route is what decides about a subnet: a default route and where it leads.
type route struct {
	gateway, carrierGateway string
}

// routeTable is a route table as far as visibility needs it.
type routeTable struct {
	defaultRoutes []route
}

// public reports whether a default route leads to an internet gateway, or to a carrier gateway: Cluster API Provider
// AWS counts both.
func (t routeTable) public() bool {
	for _, r := range t.defaultRoutes {
		if strings.HasPrefix(r.gateway, "igw-") || strings.HasPrefix(r.carrierGateway, "cagw-") {
			return true
		}
	}
	return false
}

// evidence is all that is known about a subnet's visibility.
type evidence struct {
	hint SubnetHint
	// hinted says that the user names the route tables of subnets. A subnet without one is then associated with the main
	// one.
	hinted      bool
	routeTables map[string]routeTable
	mainTable   string
	tags        map[string]string
	publicTag   string
	mapPublicIP bool
}

// visibility decides whether a subnet is public, and says why. The order is from what is certain to what is likely:
//
//  1. what the user says;
//  2. the default route of the route table that the user names;
//  3. the tags of roles that Kubernetes, Cluster API Provider AWS and the user's own convention use;
//  4. mapPublicIpOnLaunch: only a public subnet has use for it. Its absence says nothing;
//  5. the main route table of the VPC, when the user named those of other subnets: it holds for those without one of
//     their own.
//
// Rejected: to take the main route table without any hint. Route tables do not show their associations, so it would be
// a guess.
func (e evidence) visibility() (Visibility, string) {
	if e.hint.Public != nil {
		return visible(*e.hint.Public), "the import says so"
	}
	if t, known := e.routeTables[e.hint.RouteTableID]; known {
		return visible(t.public()), "the route table that the import names"
	}
	if v, tag := e.byTags(); v != UnknownVisibility {
		return v, "its tag " + tag
	}
	if e.mapPublicIP {
		return Public, "it gives public addresses to instances"
	}
	if t, known := e.routeTables[e.mainTable]; known && e.hinted && e.hint.RouteTableID == "" {
		return visible(t.public()), "the main route table of the VPC"
	}
	return UnknownVisibility, "no route table, no tag and no public addresses indicate it"
}

// byTags reads the tags of roles. Tags that contradict each other say nothing.
func (e evidence) byTags() (Visibility, string) {
	if value, ok := e.tags[e.publicTag]; ok && e.publicTag != "" {
		switch strings.ToLower(value) {
		case "true", "1":
			return Public, e.publicTag
		case "false", "0":
			return Private, e.publicTag
		}
	}
	const internet, internal, role = "kubernetes.io/role/elb", "kubernetes.io/role/internal-elb", "sigs.k8s.io/cluster-api-provider-aws/role"
	_, isInternet := e.tags[internet]
	_, isInternal := e.tags[internal]
	switch {
	case isInternet && !isInternal:
		return Public, internet
	case isInternal && !isInternet:
		return Private, internal
	case e.tags[role] == "public":
		return Public, role
	case e.tags[role] == "private":
		return Private, role
	}
	return UnknownVisibility, ""
}

func visible(public bool) Visibility {
	if public {
		return Public
	}
	return Private
}
