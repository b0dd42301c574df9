// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// anyName is the wildcard for all groups, or all kinds.
const anyName = "*"

// A Selector is which objects a rule is for: those of a kind, or of all kinds, of a group, of the groups below a
// domain, or of all groups.
type Selector struct {
	// Group is an API group, "*.example.org" for the groups below a domain, or "*" for all.
	Group string

	// Kind is a kind, or "*" for all.
	Kind string

	// Version is an API version, or empty for all.
	Version string
}

// Selects is whether objects of a kind, in some version, are among the Selector's.
func (s Selector) Selects(kind schema.GroupKind) bool {
	if s.Kind != anyName && s.Kind != kind.Kind {
		return false
	}
	if domain, below := strings.CutPrefix(s.Group, "*."); below {
		return strings.HasSuffix(kind.Group, "."+domain)
	}
	return s.Group == anyName || s.Group == kind.Group
}

// selectors are those of a rule, of which the API server bounds the number.
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

// ruleSet is a set of rules by what they select. Rules with the same Selector are asked in their order.
type ruleSet map[Selector][]*Rule

func newRuleSet(rules []*Rule) ruleSet {
	set := ruleSet{}
	for _, r := range rules {
		for _, s := range r.selectors {
			set[s] = append(set[s], r)
		}
	}
	return set
}

// chain returns the rules of several sets for a kind, in the order in which they are asked: the most specific first,
// and of rules that are equally specific those of the earlier set. A group says more than a kind, and a kind more than
// a version. With exactly it leaves out wildcards.
func chain(gvk schema.GroupVersionKind, exactly bool, sets ...ruleSet) []*Rule {
	var rules []*Rule
	add := func(s Selector) {
		for _, set := range sets {
			rules = append(rules, set[s]...)
		}
	}
	addGroup := func(group string) {
		add(Selector{Group: group, Kind: gvk.Kind, Version: gvk.Version})
		add(Selector{Group: group, Kind: gvk.Kind})
		if !exactly {
			add(Selector{Group: group, Kind: anyName, Version: gvk.Version})
			add(Selector{Group: group, Kind: anyName})
		}
	}
	addGroup(gvk.Group)
	if exactly {
		return rules
	}
	for domain := gvk.Group; ; {
		_, rest, more := strings.Cut(domain, ".")
		if !more {
			break
		}
		addGroup("*." + rest)
		domain = rest
	}
	addGroup(anyName)
	return rules
}

// maxChains bounds how many kinds' rules are remembered. Clusters can have any number of kinds.
const maxChains = 1024

// chains remembers the rules of kinds.
type chains struct {
	mu    sync.RWMutex
	byGVK map[schema.GroupVersionKind][]*Rule
}

// of returns what is remembered for a kind, and remembers what find returns if it is nothing.
func (c *chains) of(gvk schema.GroupVersionKind, find func() []*Rule) []*Rule {
	c.mu.RLock()
	rules, known := c.byGVK[gvk]
	c.mu.RUnlock()
	if known {
		return rules
	}
	rules = find()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byGVK == nil || len(c.byGVK) >= maxChains {
		c.byGVK = map[schema.GroupVersionKind][]*Rule{}
	}
	c.byGVK[gvk] = rules
	return rules
}
