// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Cascades are the fields of a Cluster and a MachinePool that name what Cluster API core deletes with them.
func Cascades(gk schema.GroupKind) [][]string {
	switch gk {
	case clusterv1.GroupVersion.WithKind("Cluster").GroupKind():
		return [][]string{{"spec", "infrastructureRef"}, {"spec", "controlPlaneRef"}}
	case clusterv1.GroupVersion.WithKind("MachinePool").GroupKind():
		return [][]string{{"spec", "template", "spec", "infrastructureRef"}, {"spec", "template", "spec", "bootstrap", "configRef"}}
	default:
		return nil
	}
}
