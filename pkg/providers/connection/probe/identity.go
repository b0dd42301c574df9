// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import "regexp"

// A cluster is identified by the UID of its namespace kube-system, reported by the cluster, or by the annotation for
// the cluster identifier, set by users of the hub. Both are used in the same place. They never overlap (a UID is a
// UUID, an identifier is not), so a cluster cannot claim another's identifier, and an annotation cannot name a cluster
// without one.
var (
	// canonicalUUID is what API servers generate.
	canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	// likeUUID is what a reader could mistake for a UUID.
	likeUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}$`)
)

// ValidUID reports whether a UID of kube-system reported by an API server is accepted.
func ValidUID(uid string) bool { return canonicalUUID.MatchString(uid) }

// LikeUID reports whether a word could be mistaken for a cluster UID, so that it cannot be an identifier.
func LikeUID(word string) bool { return likeUUID.MatchString(word) }
