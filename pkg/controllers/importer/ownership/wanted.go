// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// WantedImport is the import in the terms of pkg/reflection.
func WantedImport(imp *fleetv1alpha1.ClusterImport) reflection.Import {
	s := imp.Spec
	w := reflection.Import{
		Namespace: imp.Namespace, Name: imp.Name, UID: imp.UID,
		Cloud:             reflection.Cloud(s.Cloud()),
		ProviderConfig:    reflection.ProviderConfig{Kind: cmp.Or(s.ProviderConfigRef.Kind, "ProviderConfig"), Name: s.ProviderConfigRef.Name},
		Labels:            Marks(imp),
		ClusterLabels:     map[string]string{fleetv1alpha1.ImportedLabel: "true"},
		NodePools:         slices.Clone(s.NodePools.Names),
		DiscoverNodePools: s.NodePools.Mode != fleetv1alpha1.NodePoolsModeList,
		StrictPause:       s.Pause == fleetv1alpha1.ImportPauseStrict,
	}
	if s.Enroll != "" {
		w.ClusterLabels[fleetv1alpha1.EnrollLabel] = s.Enroll
	}
	switch source := s.KubeconfigSource(); {
	case source == fleetv1alpha1.KubeconfigSourceProvider && s.GKE == nil,
		source == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal, source == fleetv1alpha1.KubeconfigSourceToken && s.AKS != nil:
		w.ConnectionSecretName = ConnectionSecretName(imp)
	}
	switch {
	case s.EKS != nil:
		w.Place, w.ClusterName = s.EKS.Region, s.EKS.ClusterName
		w.NodePools = append(w.NodePools, s.EKS.NodeGroupNames...)
	case s.AKS != nil:
		w.Place, w.AzureRegion, w.ClusterName = s.AKS.ResourceGroupName, s.AKS.Location, s.AKS.ClusterName
		w.PublicName = s.AKS.Endpoint == fleetv1alpha1.AKSEndpointPublic
	case s.GKE != nil:
		w.Place, w.ClusterName = s.GKE.Location, s.GKE.ClusterName
		w.DNSEndpoint = s.GKE.Endpoint == fleetv1alpha1.GKEEndpointDNS
	}
	slices.Sort(w.NodePools)
	w.NodePools = slices.Compact(w.NodePools)
	if s.Subnets != nil {
		w.PublicSubnetTag = s.Subnets.PublicTag
		for _, o := range s.Subnets.Overrides {
			hint := reflection.SubnetHint{ID: o.ID, RouteTableID: o.RouteTableID}
			if o.Type != "" {
				public := o.Type == fleetv1alpha1.SubnetTypePublic
				hint.Public = &public
			}
			w.Subnets = append(w.Subnets, hint)
		}
	}
	return w
}
