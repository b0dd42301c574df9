// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"regexp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// cloud is all that differs from one cloud to another.
type cloud struct {
	grammar
	// kinds of managed resources, the cluster first.
	kinds []Kind
	// reflected are the kinds of its Cluster API provider.
	reflected reflectedKinds
	// want adds the managed resources that are wanted.
	want func(*wanter, Observed)
	// read reads the facts out of what was observed of the cluster.
	read func(*reader, block) error
	// identity makes the identity that the provider must refuse. Nil: the provider refers to a Secret, which needs not be
	// made.
	identity func(*reflector) error
	// infraCluster, controlPlane and infraPool fill in what other clouds do not have. Nil: nothing.
	infraCluster, controlPlane func(r *reflector, b, status *builder)
	infraPool                  func(r *reflector, pool NodePool, b *builder)
}

// grammar is how a cloud spells its names. A name becomes a part of the identifier by which a provider looks a resource
// up (".../agentPools/<name>"), so one with other characters could make it look up something else. Node labels, which
// the owner of the imported cluster writes, are held against it as well.
type grammar struct {
	cluster, pool, place *regexp.Regexp
	placeName            string
	// poolLabel is the Node label that names a Node's pool.
	poolLabel string
}

// reflectedKinds are the kinds of one Cluster API provider. A provider without kinds of identities refers to Secrets.
type reflectedKinds struct {
	identity, infraCluster, controlPlane, infraPool schema.GroupVersionKind
}

// infrastructure is a kind of the group in which Cluster API's providers have theirs.
func infrastructure(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: groupInfrastructure, Version: version, Kind: kind}
}

func cloudOf(name Cloud) (cloud, bool) {
	switch name {
	case EKS:
		return eksCloud(), true
	case AKS:
		return aksCloud(), true
	case GKE:
		return gkeCloud(), true
	default:
		return cloud{}, false
	}
}
