// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "regexp"

// A cluster is identified by the UID of its namespace kube-system, which the cluster says itself, or by the annotation
// for the cluster identifier, which people in the hub write. Both are used in the same place. So that a cluster can not
// call itself by an identifier that somebody in the hub gave to another, nor an annotation name a cluster that never
// had one, the two have no value in common: a UID is a UUID, and an identifier is not.
var (
	// canonicalUUID is what API servers generate.
	canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	// likeUUID is what a reader could take for one.
	likeUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}$`)
)

// ValidUID says whether an API server's word for the UID of kube-system is taken.
func ValidUID(uid string) bool { return canonicalUUID.MatchString(uid) }

// LikeUID says whether a reader could take a word for the UID of a cluster, so that it cannot be an identifier.
func LikeUID(word string) bool { return likeUUID.MatchString(word) }
