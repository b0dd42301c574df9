// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// offer is what a cluster's class offers to its users.
type offer struct {
	mode      fleetv1alpha1.DiscoveryMode
	apiGroups []string

	// excluded are labels that copies do not have, in addition to those that are never copied; see usermeta.Owned.
	excluded []string

	// protected reports whether a policy protects what Masthead puts into the cluster.
	protected bool
}

// newOffer returns what a class offers. A class from before spec.agent.discovery offers everything. The definition of
// Applications is protected without an agent, too: deleting it deletes every Application and all that these own.
func newOffer(class fleetv1alpha1.EnrollmentClassSpec) offer {
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

// shows reports whether objects of a kind are shown at all.
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

// includes reports whether objects of an API group are shown. Those without a group are not, unless everything is.
func (o offer) includes(group string) bool {
	return len(o.apiGroups) == 0 || slices.Contains(o.apiGroups, group)
}
