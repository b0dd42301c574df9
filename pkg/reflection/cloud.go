// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

// cloud holds the differences between clouds.
type cloud struct {
	grammar
	// kinds of managed resources, the cluster first.
	kinds []Kind
	// reflected are the kinds of its Cluster API provider.
	reflected reflectedKinds
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
