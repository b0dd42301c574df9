// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Validate reports whether the import can be carried out at all. Its errors are for the user to fix.
func (i Import) Validate() error {
	switch {
	case i.UID == "" || i.Name == "" || i.Namespace == "":
		return errors.New("an import needs a namespace, a name and a UID")
	case len(validation.IsDNS1123Label(i.reflectedName())) > 0:
		return fmt.Errorf("the name of the reflected Cluster must be a DNS label, not %q", i.reflectedName())
	case len(i.NodePools) > MaxNodePools:
		return fmt.Errorf("an import lists %d node pools; at most %d are read", len(i.NodePools), MaxNodePools)
	case len(i.FargateProfiles) > MaxFargateProfiles:
		return fmt.Errorf("an import lists %d Fargate profiles; at most %d are read", len(i.FargateProfiles), MaxFargateProfiles)
	case len(i.Subnets) > MaxSubnets:
		return fmt.Errorf("an import has hints for %d subnets; at most %d are read", len(i.Subnets), MaxSubnets)
	}
	return i.validateIdentifiers()
}

func (i Import) validateIdentifiers() error {
	g := findCloud(i.Cloud)
	if g.name == "" {
		return fmt.Errorf("unknown cloud %q", i.Cloud)
	}
	if !g.cluster.MatchString(i.ClusterName) {
		return fmt.Errorf("%q is not the name of an %s cluster", i.ClusterName, i.Cloud)
	}
	if !g.place.MatchString(i.Place) {
		return fmt.Errorf("%q is not a %s", i.Place, g.placeName)
	}
	if g.azureRegion != nil && !g.azureRegion.MatchString(i.AzureRegion) {
		return fmt.Errorf("%q is not a region of Azure, as westeurope: delete this ClusterImport and create another one", i.AzureRegion)
	}
	for _, pool := range i.NodePools {
		if !g.pool.MatchString(pool) {
			return fmt.Errorf("%q is not the name of a node pool of %s", pool, i.Cloud)
		}
	}
	for _, profile := range i.FargateProfiles {
		if i.Cloud != EKS || !g.pool.MatchString(profile) {
			return fmt.Errorf("%q is not the name of a Fargate profile of EKS", profile)
		}
	}
	for _, s := range i.Subnets {
		if !subnetID.MatchString(s.ID) || s.RouteTableID != "" && !routeTableID.MatchString(s.RouteTableID) {
			return fmt.Errorf("hint for subnet %q with route table %q: not identifiers of AWS", s.ID, s.RouteTableID)
		}
	}
	return nil
}
