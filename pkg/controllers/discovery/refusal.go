// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import "github.com/masthead-dev/masthead/pkg/kindwatch"

// wrote notes that something was written or deleted.
func (p *pass) wrote(kind kindwatch.Kind) {
	if isPolicy(kind) {
		p.w.user.Wrote(p.clock.Now())
	}
}

// isPolicy is whether a kind is one to which policies do not apply.
func isPolicy(kind kindwatch.Kind) bool { return kind == policyKind || kind == bindingKind }

// refusedByPolicy is whether a refusal of what was to be done with an object of a kind may come from our own policy,
// which knows us under the name that we had. Then the cluster is asked for the name, or the policy that has the right
// one is waited for, and it is no problem. Nothing else is written in this pass.
func (p *pass) refusedByPolicy(kind kindwatch.Kind) bool {
	now := p.clock.Now()
	_, awaited := p.unknown(policyKind, policyReasons)
	switch {
	case isPolicy(kind):
		return false
	case p.offer.protected && awaited:
		// When it is known, it is written, which is an event.
	case p.protected && !p.asked && !p.w.user.IsSure(now):
		p.w.user.Doubt(now)
		p.within(recheckInterval)
	case p.w.user.IsNew(now):
		p.within(recheckInterval)
	default:
		return false
	}
	p.refused = true
	return true
}
