// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxChains bounds the number of kinds whose rules are cached. Clusters can have any number of kinds.
const maxChains = 1024

// ruleSet is a set of rules by selector. Rules with the same Selector are evaluated in order.
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

// chain returns the rules of several sets for a kind, in evaluation order: the most specific first, and among equally
// specific ones those of the earlier set. A group is more specific than a kind, and a kind more than a version. With
// exactly it leaves out wildcards.
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

// chains caches the rules of kinds.
type chains struct {
	mu    sync.RWMutex
	byGVK map[schema.GroupVersionKind][]*Rule
}

// of returns the cached rules of a kind, or caches the result of find.
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
