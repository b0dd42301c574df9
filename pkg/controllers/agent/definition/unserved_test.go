// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"testing"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
)

func TestNotEstablished(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, conditions, want string
	}{
		"Served": {reason: "What is established is served.", conditions: `[{'type':'NamesAccepted','status':'True'},{'type':'Established','status':'True'}]`},
		"NamesTaken": {
			reason:     "The names say more than what follows from them.",
			conditions: `[{'type':'Established','status':'False','message':'not all'},{'type':'NamesAccepted','status':'False','message':'taken'}]`,
			want:       "its names are not accepted: taken",
		},
		"NamesTakenLater": {
			reason:     "One that was established keeps what it has, without the names that it lost.",
			conditions: `[{'type':'Established','status':'True'},{'type':'NamesAccepted','status':'False','message':'taken'}]`,
			want:       "its names are not accepted: taken",
		},
		"NotEstablished": {
			reason: "The cause does not matter.", conditions: `[{'type':'NamesAccepted','status':'True'},{'type':'Established','status':'False','message':'later'}]`,
			want: "it is not established: later",
		},
		"Nothing": {reason: "The API server has not set a condition.", conditions: `[]`, want: "it is not established: "},
		"Forged":  {reason: "What is no condition says nothing.", conditions: `['x',{'type':'Established','status':1}]`, want: "it is not established: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, not := NotEstablished(agenttest.Parse(t, `{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','status':{'conditions':`+tc.conditions+`}}`))
			if got != tc.want || not != (tc.want != "") {
				t.Errorf("%s want %q, got %q (%t)", tc.reason, tc.want, got, not)
			}
		})
	}
}
