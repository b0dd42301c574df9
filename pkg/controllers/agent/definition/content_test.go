// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

func TestDefinitionFor(t *testing.T) {
	hub := agenttest.Parse(t, `{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'dbs.acmeco.org','uid':'x',
		'labels':{'a':'b'},'annotations':{'a':'b'},'finalizers':['x'],'ownerReferences':[{'name':'xrd'}],'managedFields':[{'manager':'x'}]},
		'spec':{'group':'acmeco.org','conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'caBundle':'x'}}},
		'versions':[{'name':'v1','served':true,'storage':false},{'name':'v2','served':true,'storage':true}]},'status':{'storedVersions':['v2']}}`)
	want := agenttest.Parse(t, `{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'dbs.acmeco.org',
		'labels':{'masthead.dev/managed-by':'masthead','masthead.dev/hub':'hub-a'}},
		'spec':{'group':'acmeco.org','conversion':{'strategy':'None'},
		'versions':[{'name':'v1','served':false,'storage':false},{'name':'v2','served':true,'storage':true}]}}`)
	owner := hubidentity.Owner{ID: agenttest.OurHub}
	if diff := cmp.Diff(want.Object, Stamped(DefinitionFor(hub, "v2"), owner).Object); diff != "" {
		t.Errorf("want names, versions and schemas, and nothing of the hub (-want +got):\n%s", diff)
	}

	have := want.DeepCopy()
	have.SetUID("theirs")
	have.SetAnnotations(map[string]string{"example.org/note": "stays"})
	if !SameDefinition(have, want, owner) {
		t.Error("want metadata of others to make no difference")
	}
	_ = unstructured.SetNestedField(have.Object, "more", "spec", "added")
	if SameDefinition(have, want, owner) {
		t.Error("want an added field to make a difference")
	}
	fixed := Corrected(have, want)
	if !SameDefinition(fixed, want, owner) || fixed.GetUID() != "theirs" || fixed.GetAnnotations()["example.org/note"] != "stays" {
		t.Errorf("want the spec to be put back and nothing else, got %v", fixed.Object)
	}
	have.SetLabels(nil)
	if IsOurs(have, owner) || SameDefinition(have, want, owner) {
		t.Error("want a definition without our label not to be ours")
	}
}

// TestObservesGeneration checks that a definition gets the default only where every object stays valid with it.
func TestObservesGeneration(t *testing.T) {
	const field = `'observedGeneration':{'type':'integer','format':'int64','description':'The generation that this status is about, or -1 before Masthead has looked at the object.'}`
	const whole = `{'type':'object','properties':{'a':{'type':'string'}}}`
	for name, tc := range map[string]struct {
		reason, status, root, want string
		noSubresource              bool
	}{
		"Added": {
			reason: "Nothing speaks against it.", status: whole,
			want: `{'type':'object','default':{'observedGeneration':-1},'properties':{'a':{'type':'string'},` + field + `}}`,
		},
		"Theirs": {
			reason: "The author's field is kept.", status: `{'type':'object','properties':{'observedGeneration':{'type':'integer'}}}`,
			want: `{'type':'object','default':{'observedGeneration':-1},'properties':{'observedGeneration':{'type':'integer'}}}`,
		},
		"TheirsIsAText": {
			reason: "An author's field of another type is left alone.",
			status: `{'type':'object','properties':{'observedGeneration':{'type':'string'}}}`,
			want:   `{'type':'object','properties':{'observedGeneration':{'type':'string'}}}`,
		},
		"TheirsIsPositive": {
			reason: "-1 would not be valid.", status: `{'type':'object','properties':{'observedGeneration':{'type':'integer','minimum':0}}}`,
			want: `{'type':'object','properties':{'observedGeneration':{'type':'integer','minimum':0}}}`,
		},
		"Required": {
			reason: "A status with nothing else would not be valid.", status: `{'type':'object','required':['a'],'properties':{'a':{'type':'string'}}}`,
			want: `{'type':'object','required':['a'],'properties':{'a':{'type':'string'}}}`,
		},
		"RuleOfTheStatus": {
			reason: "Nor perhaps by this rule.", status: `{'type':'object','properties':{},'x-kubernetes-validations':[{'rule':'has(self.a)'}]}`,
			want: `{'type':'object','properties':{},'x-kubernetes-validations':[{'rule':'has(self.a)'}]}`,
		},
		"RuleOfTheObject": {
			reason: "Nor by this one.", status: whole, root: `,'x-kubernetes-validations':[{'rule':'!has(self.status) || has(self.status.a)'}]`, want: whole,
		},
		"Opaque":        {reason: "Without properties nothing is known.", status: `{'type':'object'}`, want: `{'type':'object'}`},
		"NoSubresource": {reason: "The status is a part of what users write.", status: whole, noSubresource: true, want: whole},
	} {
		t.Run(name, func(t *testing.T) {
			subresources := `,'subresources':{'status':{}}`
			if tc.noSubresource {
				subresources = ""
			}
			spec := agenttest.Parse(t, fmt.Sprintf(`{'kind':'x','versions':[{'name':'v1','schema':{'openAPIV3Schema':{'type':'object','properties':{'status':%s}%s}}%s}]}`,
				tc.status, tc.root, subresources)).Object
			observesGeneration(spec)
			version, _ := crossplane.Versions(&unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(spec)}})[0].(map[string]any)
			got, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "status")
			want := agenttest.Parse(t, `{'kind':'x','status':`+tc.want+`}`).Object["status"]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestShowsAgentSynced(t *testing.T) {
	const (
		ours   = `{'name':'AgentSynced','type':'string','jsonPath':'.status.conditions[?(@.type=="AgentSynced")].status'}`
		age    = `{'name':'AGE','type':'date','jsonPath':'.metadata.creationTimestamp'}`
		synced = `{'name':'SYNCED','type':'string','jsonPath':'.status.synced'}`
	)
	for _, tc := range []struct{ reason, columns, want, subresources string }{
		{"It comes before the age.", `[` + synced + `,` + age + `]`, `[` + synced + `,` + ours + `,` + age + `]`, `{'status':{}}`},
		{"It is the last if there is no age.", `[` + synced + `]`, `[` + synced + `,` + ours + `]`, `{'status':{}}`},
		{"The age goes on to be shown.", `[]`, `[` + ours + `,{'name':'Age','type':'date','jsonPath':'.metadata.creationTimestamp'}]`, `{'status':{}}`},
		{"A column of that name is its author's.", `[{'name':'AgentSynced'}]`, `[{'name':'AgentSynced'}]`, `{'status':{}}`},
		{"It is not added twice.", `[` + ours + `]`, `[` + ours + `]`, `{'status':{}}`},
		{"Without a status there is nothing to show.", `[` + synced + `]`, `[` + synced + `]`, `{}`},
	} {
		parse := func(columns string) *unstructured.Unstructured {
			u := agenttest.Parse(t, `{'kind':'C','apiVersion':'v1','spec':{'versions':[{'name':'v1','subresources':`+tc.subresources+
				`,'additionalPrinterColumns':`+strings.ReplaceAll(columns, `"`, `@@`)+`}]}}`)
			text, err := u.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := u.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), "@@", "'"))); err != nil {
				t.Fatal(err)
			}
			return u
		}
		got, want := parse(tc.columns), parse(tc.want)
		spec, _ := got.Object["spec"].(map[string]any)
		showsAgentSynced(spec)
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}
