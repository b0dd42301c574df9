// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
)

func TestOffers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		agent  fleetv1alpha1.AgentSpec
		want   bool
	}{
		"Everything": {reason: "No list of groups means every group.", agent: fleetv1alpha1.AgentSpec{}, want: true},
		"Listed":     {reason: "A group that is listed is offered.", agent: fleetv1alpha1.AgentSpec{APIGroups: []string{"a.org", "b.org"}}, want: true},
		"NotListed":  {reason: "A group that is not listed is not, even if it ends like one that is.", agent: fleetv1alpha1.AgentSpec{APIGroups: []string{"org", "x.b.org"}}},
		"Disabled":   {reason: "A disabled agent offers nothing.", agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := index.Offers(tc.agent, "b.org"); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
