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

// Policy is what a cluster's class allows for its Applications.
type Policy struct {
	// ObserveOnly reports whether components are not written and no Pods are created.
	ObserveOnly bool

	// OwnsDiscovered reports whether Applications may own what they discover.
	OwnsDiscovered bool

	Visibility []fleetv1alpha1.ApplicationVisibility
}

// NewPolicy returns the Policy of a class.
func NewPolicy(class *fleetv1alpha1.EnrollmentClass) Policy {
	spec := class.Spec.Applications
	return Policy{
		ObserveOnly:    spec.Mode == fleetv1alpha1.ApplicationsModeObserveOnly,
		OwnsDiscovered: spec.DiscoveredOwnership == fleetv1alpha1.DiscoveredOwnershipAllowed,
		Visibility:     spec.Visibility,
	}
}

// Visibility is what the Applications of a namespace see: that namespace, and what the class lists for it. It depends
// on the class alone, so it reveals nothing about which objects exist.
type Visibility struct {
	Own string
	Policy
}

func (s Visibility) granted(grants func(fleetv1alpha1.ApplicationVisibility) bool) bool {
	return slices.ContainsFunc(s.Visibility, func(v fleetv1alpha1.ApplicationVisibility) bool {
		return slices.Contains(v.From, s.Own) && grants(v)
	})
}

// Namespace reports whether the objects of a namespace are seen.
func (s Visibility) Namespace(name string) bool {
	return name == s.Own || name != "" && s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool { return slices.Contains(v.Namespaces, name) })
}

// Namespaces are the visible ones of those that an Application asks for: its own first, and the empty one for
// cluster-scoped objects if any of these are seen.
func (s Visibility) Namespaces(requested []string) []string {
	out := []string{s.Own}
	for _, name := range requested {
		if name != s.Own && s.Namespace(name) {
			out = append(out, name)
		}
	}
	if s.AnyClusterScoped() {
		out = append(out, "")
	}
	return out
}

// AnyClusterScoped reports whether any cluster-scoped objects are seen.
func (s Visibility) AnyClusterScoped() bool {
	return s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool { return len(v.ClusterScoped) > 0 })
}

// ClusterScoped reports whether the objects of a cluster-scoped kind are seen.
func (s Visibility) ClusterScoped(kind kindwatch.Kind) bool {
	return s.granted(func(v fleetv1alpha1.ApplicationVisibility) bool {
		return slices.ContainsFunc(v.ClusterScoped, func(r fleetv1alpha1.ReferencedResource) bool {
			return r.Group == kind.Group && (r.Resource == kind.Resource || r.Resource == everyResource)
		})
	})
}
