// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// isPolicy reports whether a kind is exempt from policies.
func isPolicy(kind kindwatch.Kind) bool { return kind == policyKind || kind == bindingKind }

// refusedByPolicy reports whether our own policy, which may still name our previous username, may have refused a
// request for an object of a kind. Then the username is requested again, or the pass waits for the corrected
// policy, and no problem is reported. Nothing else is written in this pass.
func (p *pass) refusedByPolicy(kind kindwatch.Kind) (wait condition.PendingError, refused bool) {
	now := p.clock.Now()
	switch {
	case isPolicy(kind):
		return wait, false
	case p.offer.protected && condition.IsPending(p.known(policyKind, policyReasons)):
		// Once the username is known, the policy is written, which triggers an event.
	case p.protected && !p.userRequested && !p.w.user.IsSure(now):
		p.w.user.Doubt(now)
		wait.After = condition.Soon
	case p.w.user.IsNew(now):
		wait.After = condition.Soon
	default:
		return wait, false
	}
	p.refused = true
	return wait, true
}
