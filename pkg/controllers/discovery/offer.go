// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// offer is what the class of a cluster shows to its users.
type offer struct {
	mode      fleetv1alpha1.DiscoveryMode
	apiGroups []string

	// excluded are labels that copies do not have, in addition to those that never travel; see usermeta.Owned.
	excluded []string

	// protected is whether what Masthead puts into the cluster is protected by a policy there.
	protected bool
}

// offerOf returns what a class offers. A class from before there was spec.agent.discovery offers everything. The
// definition of Applications is protected without an agent, too: whoever deletes it deletes every Application, and all
// that these own.
func offerOf(class fleetv1alpha1.EnrollmentClassSpec) offer {
	agent := class.Agent
	if agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return offer{mode: fleetv1alpha1.DiscoveryModeNone, protected: class.Applications.Mode != fleetv1alpha1.ApplicationsModeDisabled}
	}
	o := offer{mode: agent.Discovery, apiGroups: agent.APIGroups, excluded: agent.ExcludedMetadata, protected: true}
	if o.mode == "" {
		o.mode = fleetv1alpha1.DiscoveryModeFull
	}
	return o
}

// shows is whether objects of a kind are shown at all.
func (o offer) shows(resource string) bool {
	switch o.mode {
	case fleetv1alpha1.DiscoveryModeFull:
		return true
	case fleetv1alpha1.DiscoveryModeDefinitionsOnly:
		return resource != resourceComposition
	case fleetv1alpha1.DiscoveryModeNone:
	}
	return false
}

// includes is whether what is about an API group is shown. What is about none is not, unless everything is.
func (o offer) includes(group string) bool {
	return len(o.apiGroups) == 0 || slices.Contains(o.apiGroups, group)
}
