// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/masthead-dev/masthead/internal/objecttest"
)

func TestMachinery(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                     string
		Form                       Form
		spec, pushed, whatIsTheirs string
	}{
		"Claim": {
			reason: "A claim never names a composite, and its machinery is directly under spec.", Form: FormClaim,
			spec: `{'spec':{'size':1,'resourceRef':{'name':'x'},'compositionRef':{'name':'a'},'compositionSelector':{'matchLabels':{'a':'b'}},` +
				`'compositionUpdatePolicy':'Manual','compositeDeletePolicy':'Foreground'}}`,
			pushed: `{'spec':{'size':1,'compositionRef':{'name':'a'},'compositionSelector':{'matchLabels':{'a':'b'}},` +
				`'compositionUpdatePolicy':'Manual','compositeDeletePolicy':'Foreground'}}`,
			whatIsTheirs: `{'spec':{'size':1,'compositionSelector':{'matchLabels':{'a':'b'}}}}`,
		},
		"ClaimWithAFieldCalledCrossplane": {
			reason: "In a claim, crossplane is a field like any other.", Form: FormClaim,
			spec: `{'spec':{'crossplane':{'resourceRefs':[]}}}`, pushed: `{'spec':{'crossplane':{'resourceRefs':[]}}}`, whatIsTheirs: `{'spec':{'crossplane':{'resourceRefs':[]}}}`,
		},
		"Composite": {
			reason: "A composite never names composed resources; what the user may choose travels.", Form: FormComposite,
			spec: `{'spec':{'size':1,'crossplane':{'resourceRefs':[{'apiVersion':'v1','kind':'Secret','name':'theirs'}],'compositionRef':{'name':'a'},` +
				`'compositionSelector':{'matchLabels':{'a':'b'}},'compositionRevisionRef':{'name':'r'},'compositionRevisionSelector':{'matchLabels':{'c':'d'}},'compositionUpdatePolicy':'Manual'}}}`,
			pushed: `{'spec':{'size':1,'crossplane':{'compositionRef':{'name':'a'},` +
				`'compositionSelector':{'matchLabels':{'a':'b'}},'compositionRevisionRef':{'name':'r'},'compositionRevisionSelector':{'matchLabels':{'c':'d'}},'compositionUpdatePolicy':'Manual'}}}`,
			whatIsTheirs: `{'spec':{'size':1,'crossplane':{'compositionSelector':{'matchLabels':{'a':'b'}}}}}`,
		},
		"CompositeWithClaimLikeFields": {
			reason: "Outside of spec.crossplane the names are the API author's.", Form: FormComposite,
			spec:         `{'spec':{'resourceRef':'mine','compositionRef':'mine','resourceRefs':['mine']}}`,
			pushed:       `{'spec':{'resourceRef':'mine','compositionRef':'mine','resourceRefs':['mine']}}`,
			whatIsTheirs: `{'spec':{'resourceRef':'mine','compositionRef':'mine','resourceRefs':['mine']}}`,
		},
		"CompositeWithUnknownMachinery": {
			reason: "What a later Crossplane adds does not travel unseen, and nothing is left of the field.", Form: FormComposite,
			spec: `{'spec':{'size':1,'crossplane':{'adopt':'everything','resourceRefs':[]}}}`, pushed: `{'spec':{'size':1}}`, whatIsTheirs: `{'spec':{'size':1,'crossplane':{'adopt':'everything'}}}`,
		},
		"CompositeWithMalformedMachinery": {
			reason: "What is no object is not machinery.", Form: FormComposite,
			spec: `{'spec':{'size':1,'crossplane':'x'}}`, pushed: `{'spec':{'size':1}}`, whatIsTheirs: `{'spec':{'size':1}}`,
		},
		"Unknown": {
			reason: "What is not known is treated as a claim.",
			spec:   `{'spec':{'size':1,'resourceRef':{'name':'x'}}}`, pushed: `{'spec':{'size':1}}`, whatIsTheirs: `{'spec':{'size':1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(s string) map[string]any {
				return objecttest.Parse(t, `{'apiVersion':'acmeco.org/v1','kind':'Cache',`+strings.TrimPrefix(s, "{")).Object["spec"].(map[string]any)
			}
			in := spec(tc.spec)
			before := runtime.DeepCopyJSON(in)
			pushed, users := tc.Form.Pushable(in), tc.Form.Users(in)
			if diff := cmp.Diff(spec(tc.pushed), pushed); diff != "" {
				t.Errorf("%s pushable (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(spec(tc.whatIsTheirs), users); diff != "" {
				t.Errorf("%s users (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, in); diff != "" {
				t.Errorf("want what was given unchanged (-before +after):\n%s", diff)
			}
		})
	}
}
