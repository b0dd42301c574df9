// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// everyResource stands for all resources of a group.
const everyResource = "*"

// policy is what the class of a cluster lets be done about the Applications there.
type policy struct {
	// observeOnly is whether nothing is written to components, and no Pods are made.
	observeOnly bool

	// ownsDiscovered is whether Applications may own what they discover.
	ownsDiscovered bool

	visibility []fleetv1alpha1.ApplicationVisibility
}

func policyOf(class *fleetv1alpha1.EnrollmentClass) policy {
	spec := class.Spec.Applications
	return policy{
		observeOnly:    spec.Mode == fleetv1alpha1.ApplicationsModeObserveOnly,
		ownsDiscovered: spec.DiscoveredOwnership == fleetv1alpha1.DiscoveredOwnershipAllowed,
		visibility:     spec.Visibility,
	}
}

// sight is what the Applications of a namespace see: that namespace, and what the class lists for it. It depends on the
// class alone, so that it tells nothing about what there is.
type sight struct {
	own string
	policy
}

func (s sight) granted(grants func(fleetv1alpha1.ApplicationVisibility) bool) bool {
	return slices.ContainsFunc(s.visibility, func(v fleetv1alpha1.ApplicationVisibility) bool {
		return slices.Contains(v.From, s.own) && grants(v)
	})
}

// namespace is whether the objects of a namespace are seen.
func (s sight) namespace(name string) bool {
	return name == s.own || name != "" && s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool { return slices.Contains(v.Namespaces, name) })
}

// namespaces are those in which objects are found, of those that an Application asks for: its own first, and the empty
// one, of objects that have none, if any of these are seen.
func (s sight) namespaces(asked []string) []string {
	out := []string{s.own}
	for _, name := range asked {
		if name != s.own && s.namespace(name) {
			out = append(out, name)
		}
	}
	if s.anyClusterScoped() {
		out = append(out, "")
	}
	return out
}

// anyClusterScoped is whether any cluster-scoped objects are seen.
func (s sight) anyClusterScoped() bool {
	return s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool { return len(v.ClusterScoped) > 0 })
}

// clusterScoped is whether the objects of a cluster-scoped kind are seen.
func (s sight) clusterScoped(kind kindwatch.Kind) bool {
	return s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool {
		return slices.ContainsFunc(v.ClusterScoped, func(r fleetv1alpha1.ReferencedResource) bool {
			return r.Group == kind.Group && (r.Resource == kind.Resource || r.Resource == everyResource)
		})
	})
}
