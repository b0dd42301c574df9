// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// everyResource stands for all resources of a group.
const everyResource = "*"

// Policy is what the class of a cluster lets be done about the Applications there.
type Policy struct {
	// ObserveOnly is whether nothing is written to components, and no Pods are made.
	ObserveOnly bool

	// OwnsDiscovered is whether Applications may own what they discover.
	OwnsDiscovered bool

	Visibility []fleetv1alpha1.ApplicationVisibility
}

// PolicyOf returns what a class says.
func PolicyOf(class *fleetv1alpha1.EnrollmentClass) Policy {
	spec := class.Spec.Applications
	return Policy{
		ObserveOnly:    spec.Mode == fleetv1alpha1.ApplicationsModeObserveOnly,
		OwnsDiscovered: spec.DiscoveredOwnership == fleetv1alpha1.DiscoveredOwnershipAllowed,
		Visibility:     spec.Visibility,
	}
}

// Sight is what the Applications of a namespace see: that namespace, and what the class lists for it. It depends on the
// class alone, so that it tells nothing about what there is.
type Sight struct {
	Own string
	Policy
}

func (s Sight) granted(grants func(fleetv1alpha1.ApplicationVisibility) bool) bool {
	return slices.ContainsFunc(s.Visibility, func(v fleetv1alpha1.ApplicationVisibility) bool {
		return slices.Contains(v.From, s.Own) && grants(v)
	})
}

// Namespace is whether the objects of a namespace are seen.
func (s Sight) Namespace(name string) bool {
	return name == s.Own || name != "" && s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool { return slices.Contains(v.Namespaces, name) })
}

// Namespaces are those in which objects are found, of those that an Application asks for: its own first, and the empty
// one, of objects that have none, if any of these are seen.
func (s Sight) Namespaces(asked []string) []string {
	out := []string{s.Own}
	for _, name := range asked {
		if name != s.Own && s.Namespace(name) {
			out = append(out, name)
		}
	}
	if s.AnyClusterScoped() {
		out = append(out, "")
	}
	return out
}

// AnyClusterScoped is whether any cluster-scoped objects are seen.
func (s Sight) AnyClusterScoped() bool {
	return s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool { return len(v.ClusterScoped) > 0 })
}

// ClusterScoped is whether the objects of a cluster-scoped kind are seen.
func (s Sight) ClusterScoped(kind kindwatch.Kind) bool {
	return s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool {
		return slices.ContainsFunc(v.ClusterScoped, func(r fleetv1alpha1.ReferencedResource) bool {
			return r.Group == kind.Group && (r.Resource == kind.Resource || r.Resource == everyResource)
		})
	})
}
