// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// anyName is the wildcard for all groups, or all kinds.
const anyName = "*"

// A Selector selects the objects of a rule: those of a kind, or of all kinds, in a group, in the groups below a domain,
// or in all groups.
type Selector struct {
	// Group is an API group, "*.example.org" for the groups below a domain, or "*" for all.
	Group string

	// Kind is a kind, or "*" for all.
	Kind string

	// Version is an API version, or empty for all.
	Version string
}

// Selects reports whether the Selector matches a kind, in some version.
func (s Selector) Selects(kind schema.GroupKind) bool {
	if s.Kind != anyName && s.Kind != kind.Kind {
		return false
	}
	if domain, below := strings.CutPrefix(s.Group, "*."); below {
		return strings.HasSuffix(kind.Group, "."+domain)
	}
	return s.Group == anyName || s.Group == kind.Group
}

// selectors returns those of a rule. The API server bounds their number.
func selectors(spec fleetv1alpha1.HealthRuleSpec) []Selector {
	groups, kinds, versions := spec.Groups, spec.Kinds, spec.Versions
	if len(groups) == 0 {
		groups = []string{spec.Group}
	}
	if len(kinds) == 0 {
		kinds = []string{spec.Kind}
	}
	if len(versions) == 0 {
		versions = []string{""}
	}
	all := make([]Selector, 0, len(groups)*len(kinds)*len(versions))
	for _, group := range groups {
		for _, kind := range kinds {
			for _, version := range versions {
				all = append(all, Selector{Group: group, Kind: kind, Version: version})
			}
		}
	}
	return all
}
