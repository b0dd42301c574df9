// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
			reason: "In a claim, crossplane is a field like any other, but names no composed resources either.", Form: FormClaim,
			spec:   `{'spec':{'crossplane':{'version':'2.4','resourceRefs':[{'name':'theirs'}]}}}`,
			pushed: `{'spec':{'crossplane':{'version':'2.4'}}}`, whatIsTheirs: `{'spec':{'crossplane':{'version':'2.4','resourceRefs':[{'name':'theirs'}]}}}`,
		},
		"ClaimWithMachineryOfItsComposite": {
			reason: "Crossplane would copy it to the composite, if the XRD lets claims have unknown fields.", Form: FormClaim,
			spec: `{'spec':{'size':1,'resourceRefs':[{'apiVersion':'v1','kind':'Secret','name':'theirs'}],'claimRef':{'namespace':'theirs','name':'x'},` +
				`'requirementRef':{'namespace':'theirs','name':'x'},'environmentConfigRefs':[{'name':'theirs'}],'crossplane':'mine'}}`,
			pushed: `{'spec':{'size':1,'crossplane':'mine'}}`,
			whatIsTheirs: `{'spec':{'size':1,'claimRef':{'namespace':'theirs','name':'x'},` +
				`'requirementRef':{'namespace':'theirs','name':'x'},'environmentConfigRefs':[{'name':'theirs'}],'crossplane':'mine'}}`,
		},
		"ClaimsSecrets": {
			reason: "Where a claim's connection details go is the user's.", Form: FormClaim,
			spec:         `{'spec':{'writeConnectionSecretToRef':{'name':'creds'},'publishConnectionDetailsTo':{'name':'creds'}}}`,
			pushed:       `{'spec':{'writeConnectionSecretToRef':{'name':'creds'},'publishConnectionDetailsTo':{'name':'creds'}}}`,
			whatIsTheirs: `{'spec':{'writeConnectionSecretToRef':{'name':'creds'},'publishConnectionDetailsTo':{'name':'creds'}}}`,
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

// FuzzPushable adds to what the owner of a workload cluster could write everything that, by the schemas of Crossplane
// 0.10 to 2.4, names an object of the hub and is not a user's choice. None of it changes what is pushed, and nothing
// else is lost.
func FuzzPushable(f *testing.F) {
	// From CompositeResourceClaimSpecProps and CompositeResourceSpecProps (internal/xcrd), and ccrd before 0.13.
	forged := []string{"resourceRef", "resourceRefs", "claimRef", "requirementRef", "environmentConfigRefs"}
	for _, form := range []string{string(FormClaim), string(FormComposite), ""} {
		for _, seed := range []struct{ spec, value string }{
			{`{}`, `null`},
			{`{"size":1,"compositionRef":{"name":"a"},"compositeDeletePolicy":"Foreground","writeConnectionSecretToRef":{"name":"s"}}`, `{"name":"victim"}`},
			{`{"size":1,"resourceRefs":[],"publishConnectionDetailsTo":{"name":"s"}}`, `[{"apiVersion":"v1","kind":"Secret","name":"victim"}]`},
			{`{"crossplane":{"compositionSelector":{"matchLabels":{"a":"b"}},"resourceRefs":[]}}`, `[{"apiVersion":"v1","kind":"Secret","name":"victim"}]`},
			{`{"crossplane":{"crossplane":{"version":"2"}}}`, `"victim"`},
			{`{"crossplane":[{"resourceRefs":1}]}`, `7`},
			{`{"crossplane":null,"ResourceRefs":{}}`, `{"resourceRefs":{"name":"victim"}}`},
			{`{"compositionRevisionRef":{"name":"r"},"compositionRevisionSelector":{},"compositionUpdatePolicy":"Manual"}`, `{}`},
		} {
			f.Add(form, seed.spec, seed.value)
		}
	}
	f.Fuzz(func(t *testing.T, form, spec, value string) {
		var honest map[string]any
		var name any
		if json.Unmarshal([]byte(spec), &honest) != nil || json.Unmarshal([]byte(value), &name) != nil || honest == nil {
			return
		}
		nested, isObject := honest[CrossplaneField].(map[string]any)
		composite := Form(form) == FormComposite
		for _, field := range forged {
			delete(nested, field)
			if !composite {
				delete(honest, field)
			}
		}
		victim := runtime.DeepCopyJSON(honest)
		there, _ := victim[CrossplaneField].(map[string]any)
		for _, field := range forged {
			if isObject {
				there[field] = name
			}
			if !composite {
				victim[field] = name
			}
		}
		before := runtime.DeepCopyJSON(victim)
		got := Form(form).Pushable(victim)
		if diff := cmp.Diff(before, victim); diff != "" {
			t.Errorf("want what was given unchanged (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(Form(form).Pushable(honest), got); diff != "" {
			t.Errorf("want nothing that names an object of the hub to be pushed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(got, Form(form).Pushable(got)); diff != "" {
			t.Errorf("want what was pushed to be pushable (-want +got):\n%s", diff)
		}
		if composite {
			got, honest = maps.Clone(got), maps.Clone(honest)
			delete(got, CrossplaneField)
			delete(honest, CrossplaneField)
		}
		if diff := cmp.Diff(honest, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("want everything else to be pushed (-want +got):\n%s", diff)
		}
	})
}
