// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection/allocation"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/connection/reason"
)

// badIdentifier says why the annotation of an enrolment cannot be used, or returns nil.
func badIdentifier(e *Enrolment) *reason.Failure {
	if !probe.LikeUID(e.Identifier) {
		return nil
	}
	return reason.New(ReasonBadIdentifier, fmt.Sprintf(
		"The annotation %s has the form of a UUID, which only the UID of a cluster's namespace kube-system may have",
		fleetv1alpha1.ClusterIdentifierAnnotation))
}

// valid says whether a pin can have been made by a connection.
func (p Pin) valid() bool {
	return probe.ValidUID(p.UID) && (p.Identifier == "" || p.Identifier == p.UID || !probe.LikeUID(p.Identifier))
}

// claim is what the pin says that the enrolment holds.
func (p Pin) claim() allocation.Claim {
	return allocation.Claim{UID: p.UID, Identifier: p.Identifier, ObjectUID: p.ObjectUID}
}
