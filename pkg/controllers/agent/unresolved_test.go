// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

func TestUnresolved(t *testing.T) {
	const reference = `'references':[{'resource':'configmaps','name':'settings','fromFieldPath':'data.region','toFieldPath':'spec.region'}]`
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"NoReferences": {reason: "There is nothing to wait for.", spec: `{}`},
		"NotOurs":      {reason: "An API can have a field of that name that means something else.", spec: `{'references':[{'dependsOn':{'name':'a'}}]}`},
		"Resolved":     {reason: "The field has a value.", spec: `{'region':'eu-west-1',` + reference + `}`},
		"Unresolved":   {reason: "It has none.", spec: `{` + reference + `}`, want: fleetv1alpha1.ReasonReferencesUnresolved},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := unresolved(agenttest.Parse(t, `{'kind':'MySQLInstance','spec':`+tc.spec+`}`)); p != nil {
				got = p.Reason
			}
			if got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestStatusKeepsReferencesResolved: the condition is about the claim. The hub's own, if it has one, is not.
func TestStatusKeepsReferencesResolved(t *testing.T) {
	const here, there = `{'type':'ReferencesResolved','status':'True','reason':'Resolved'}`, `{'type':'ReferencesResolved','status':'False','reason':'Cycle'}`
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	hub := agenttest.Parse(t, `{'metadata':{'generation':7},'status':{'conditions':[{'type':'Ready','status':'True'},`+there+`]}}`)
	for name, tc := range map[string]struct{ reason, claim, want string }{
		"Shown":    {reason: "It stays.", claim: `{'metadata':{'generation':1},'status':{'conditions':[` + here + `]}}`, want: "Resolved"},
		"NotShown": {reason: "The hub's is not brought along.", claim: `{'metadata':{'generation':1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			claim := agenttest.Parse(t, tc.claim)
			shown := claim.DeepCopy()
			shown.Object["status"] = propagation.BuildStatus(claim, hub, true, propagation.Condition(claim, nil), now)
			got, _ := condition.Entry(shown, "ReferencesResolved")["reason"].(string)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
