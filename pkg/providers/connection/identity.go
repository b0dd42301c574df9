// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"regexp"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

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

// validUID says whether an API server's word for the UID of kube-system is taken.
func validUID(uid string) bool { return canonicalUUID.MatchString(uid) }

// badIdentifier says why the annotation of an enrolment cannot be used, or returns nil.
func badIdentifier(e *Enrolment) *failure {
	if !likeUUID.MatchString(e.Identifier) {
		return nil
	}
	return &failure{ReasonBadIdentifier, fmt.Sprintf(
		"The annotation %s has the form of a UUID, which only the UID of a cluster's namespace kube-system may have",
		fleetv1alpha1.ClusterIdentifierAnnotation)}
}

// valid says whether a pin can have been made by a connection.
func (p Pin) valid() bool {
	return validUID(p.UID) && (p.Identifier == "" || p.Identifier == p.UID || !likeUUID.MatchString(p.Identifier))
}
