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
	if reflection.FindCluster(&w, &s) {
		w.ConnectionSecretName = ConnectionSecretName(imp)
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
