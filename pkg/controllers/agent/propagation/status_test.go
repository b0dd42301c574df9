// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestBuildStatus(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const at, earlier = "'lastTransitionTime':'2026-05-01T12:00:00Z'", "'lastTransitionTime':'2026-01-01T00:00:00Z'"
	const synced = `{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.','observedGeneration':3,`
	const conflicted = `{'type':'AgentSynced','status':'False','reason':'Conflict','message':'taken','observedGeneration':3,`
	const awaiting = `{'type':'Reconciling','status':'True','reason':'AwaitingHub','message':'The hub has not reported yet whether the current generation of this claim is ready',` +
		`'observedGeneration':3,` + at + `},`
	const stalled = `{'type':'Stalled','status':'True','reason':'Conflict','message':'taken','observedGeneration':3,` + at + `},`
	const refused = `{'type':'ReferencesResolved','status':'False','reason':'TargetRejected','message':'x','observedGeneration':3,`
	const unresolved = `'status':'True','reason':'ReferencesUnresolved','message':'x','observedGeneration':3,`
	taken := &condition.Error{Reason: fleetv1alpha1.ReasonConflict, Message: "taken"}
	for name, tc := range map[string]struct {
		reason     string
		claim, Hub string
		behind     bool
		problem    *condition.Error
		want       string
	}{
		"Generation": {
			reason: "What has observed the hub's object as it is, has observed the claim as it is.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'metadata':{'generation':9},'status':{'conditions':[{'type':'Ready','observedGeneration':9}]}}`,
			want:   `{'conditions':[{'type':'Ready','observedGeneration':3},` + synced + at + `}]}`,
		},
		"GenerationNotObserved": {
			reason: "A high number of the hub's does not make an edit of the claim look observed.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'metadata':{'generation':9},'status':{'conditions':[{'type':'Ready','observedGeneration':8}]}}`,
			want:   `{'conditions':[{'type':'Ready','observedGeneration':2},` + awaiting + synced + at + `}]}`,
		},
		"GenerationNotPushed": {
			reason:  "What the hub has observed is not what the claim says while the claim could not be pushed.",
			claim:   `{'metadata':{'generation':3}}`,
			Hub:     `{'metadata':{'generation':2},'status':{'conditions':[{'type':'Ready','observedGeneration':2}]}}`,
			behind:  true,
			problem: taken,
			want:    `{'conditions':[{'type':'Ready','observedGeneration':2},` + stalled + conflicted + at + `}]}`,
		},
		"ReferencesRefused": {
			reason:  "A reference that its author must correct is not waited for.",
			claim:   `{'metadata':{'generation':3},'status':{'conditions':[` + refused + earlier + `}]}}`,
			problem: &condition.Error{Reason: fleetv1alpha1.ReasonReferencesUnresolved, Message: "x"},
			want: `{'conditions':[` + refused + earlier + `},{'type':'Stalled',` + unresolved + at + `},{'type':'AgentSynced',` +
				strings.Replace(unresolved, "True", "False", 1) + at + `}]}`,
		},
		"Whole": {
			reason: "The hub's status comes whole, and our condition with it.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'status':{'address':'a','conditions':[{'type':'Ready','status':'True'}]}}`,
			want:   `{'address':'a','conditions':[{'type':'Ready','status':'True'},` + synced + at + `}]}`,
		},
		"Replaces": {
			reason: "What the hub does not say any more goes.",
			claim:  `{'metadata':{'generation':3},'status':{'old':'x','conditions':[` + synced + earlier + `},{'type':'Old'}]}}`,
			Hub:    `{'status':{'address':'a'}}`,
			want:   `{'address':'a','conditions':[` + awaiting + synced + earlier + `}]}`,
		},
		"Transition": {
			reason: "The time of the transition changes with the status of the condition.",
			claim:  `{'metadata':{'generation':3},'status':{'conditions':[` + conflicted + earlier + `}]}}`,
			Hub:    `{}`,
			want:   `{'conditions':[` + awaiting + synced + at + `}]}`,
		},
		"NoHub": {
			reason:  "Without an object in the hub, what the claim shows stays, except for our condition.",
			claim:   `{'metadata':{'generation':3},'status':{'address':'a','conditions':[` + synced + earlier + `},{'type':'Ready','status':'True'}]}}`,
			problem: taken,
			want:    `{'address':'a','conditions':[{'type':'Ready','status':'True'},` + stalled + conflicted + at + `}]}`,
		},
		"HubOfAHub": {
			reason: "A condition AgentSynced of the hub's own is not brought along.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'status':{'conditions':[{'type':'AgentSynced','status':'False'}]}}`,
			want:   `{'conditions':[` + awaiting + synced + at + `}]}`,
		},
		"TheirsIsOverridden": {
			reason:  "What keeps the claim from being synchronised is said once, and not what the hub says of an older state.",
			claim:   `{'metadata':{'generation':3}}`,
			Hub:     `{'status':{'conditions':[{'type':'Reconciling','status':'True'},{'type':'Stalled','status':'False'}]}}`,
			problem: taken,
			want:    `{'conditions':[` + stalled + conflicted + at + `}]}`,
		},
		"TheirsIsShown": {
			reason: "A composition may say so itself.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'status':{'conditions':[{'type':'Ready'},{'type':'Stalled','status':'True','reason':'Quota'}]}}`,
			want:   `{'conditions':[{'type':'Ready'},{'type':'Stalled','status':'True','reason':'Quota'},` + synced + at + `}]}`,
		},
		"OldOnesGo": {
			reason: "What was refused before is not any more.",
			claim:  `{'metadata':{'generation':3},'status':{'conditions':[` + stalled + conflicted + earlier + `}]}}`,
			Hub:    `{'status':{'conditions':[{'type':'Ready'}]}}`,
			want:   `{'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"ObservedGeneration": {
			reason: "The definition in the workload cluster knows the field, so it is set.",
			claim:  `{'metadata':{'generation':3},'status':{'observedGeneration':-1}}`,
			Hub:    `{'status':{'conditions':[{'type':'Ready'}]}}`,
			want:   `{'observedGeneration':3,'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"ObservedGenerationOfTheHub": {
			reason: "One that the API's author defined is translated to the claim's own generation.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'metadata':{'generation':9},'status':{'observedGeneration':9,'conditions':[{'type':'Ready'}]}}`,
			want:   `{'observedGeneration':3,'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"ObservedGenerationOfTheHubIsBehind": {
			reason: "What the hub has not observed is not observed.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'metadata':{'generation':9},'status':{'observedGeneration':8,'conditions':[{'type':'Ready'}]}}`,
			want:   `{'observedGeneration':2,'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"Nulls": {
			reason: "Nulls would never look like what was written.",
			claim:  `{'metadata':{'generation':3}}`,
			Hub:    `{'status':{'address':null,'a':{'b':null,'c':[{'d':null}]}}}`,
			want:   `{'a':{'c':[{}]},'conditions':[` + awaiting + synced + at + `}]}`,
		},
		"PrunedField": {
			reason: "A definition that drops observedGeneration does not make us write it again and again.",
			claim:  `{'metadata':{'generation':3},'status':{'conditions':[{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.',` + earlier + `}]}}`,
			Hub:    `{'status':{'conditions':[{'type':'Ready'}]}}`,
			want:   `{'conditions':[{'type':'Ready'},{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.',` + earlier + `}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := agenttest.Parse(t, tc.claim)
			got := BuildStatus(claim, agenttest.Parse(t, tc.Hub), !tc.behind, Condition(claim, tc.problem), now)
			want := agenttest.Parse(t, `{'kind':'x','status':`+tc.want+`}`).Object["status"]
			if diff := cmp.Diff(want, any(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			claim.Object["status"] = got
			if again := BuildStatus(claim, agenttest.Parse(t, tc.Hub), !tc.behind, Condition(claim, tc.problem), now.Add(time.Hour)); StatusDiffers(claim, again) {
				t.Errorf("%s want nothing to write the second time, got %v after %v", tc.reason, again, got)
			}
		})
	}
}

func TestAwaitsFirstStatus(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 10, 0, time.UTC)
	const created = `'metadata':{'creationTimestamp':'2026-05-01T12:00:`
	for name, tc := range map[string]struct {
		reason     string
		claim, Hub string
		want       time.Duration
	}{
		"Young":      {reason: "A new object has no status for a moment.", claim: `{}`, Hub: `{` + created + `09Z'}}`, want: time.Second},
		"HasStatus":  {reason: "When the hub has said something there is nothing to wait for.", claim: `{}`, Hub: `{` + created + `09Z'},'status':{'a':'b'}}`},
		"Old":        {reason: "We do not wait for ever.", claim: `{}`, Hub: `{` + created + `01Z'}}`},
		"ClockAhead": {reason: "A hub whose clock is ahead of ours does not make us wait longer at a time.", claim: `{}`, Hub: `{` + created + `59Z'}}`, want: 2 * time.Second},
		"NotFirst": {
			reason: "A claim that has shown our condition before does not wait.",
			claim:  `{'status':{'conditions':[{'type':'AgentSynced'}]}}`, Hub: `{` + created + `09Z'}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AwaitsFirstStatus(agenttest.Parse(t, tc.claim), agenttest.Parse(t, tc.Hub), now, 2*time.Second); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
