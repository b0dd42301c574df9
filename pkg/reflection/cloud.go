// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// cloud holds the differences between clouds.
type cloud struct {
	name Cloud
	grammar
	// find sets what a spec says of its cluster, if that is in the cloud.
	find func(*Import, *fleetv1alpha1.ClusterImportSpec) bool
	// published are the sources of kubeconfigs that take what the provider publishes.
	published []fleetv1alpha1.KubeconfigSource
	// kinds of managed resources, the cluster first.
	kinds []Kind
	// placeField of forProvider names the place of a cluster, and idField of atProvider has its ID.
	placeField, idField string
	// listsPools says that the managed resource of a cluster lists its node pools.
	listsPools bool
	// writesNothing is a kind whose controller ignores managementPolicies, and writes nothing to the cloud under any.
	writesNothing Kind
	// removal are the annotations without which the provider's webhooks refuse to delete a pool.
	removal map[string]string
	// reflected are the kinds of its Cluster API provider.
	reflected reflectedKinds
	// plain is one of them whose spec may be empty.
	plain schema.GroupKind
	// oneCIDR says that the provider permits one block of services and one of Pods.
	oneCIDR bool
	// want adds the managed resources that are wanted.
	want func(*wanter, Observed)
	// read reads the facts from what was observed of the cluster.
	read func(*reader, block) error
	// identity makes the identity that the provider must refuse. Nil: the provider refers to a Secret, which is never
	// created.
	identity func(*reflector) error
	// infraCluster, controlPlane and infraPool fill in what other clouds do not have. Nil: nothing.
	infraCluster, controlPlane func(r *reflector, b, status *builder)
	infraPool                  func(r *reflector, pool NodePool, b *builder)
}
