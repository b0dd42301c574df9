// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestRetainedKind(t *testing.T) {
	const labelled = `{'kind':'CustomResourceDefinition','apiVersion':'apiextensions.k8s.io/v1','metadata':{'name':'dbs.acmeco.org'},` +
		`'spec':{'group':'acmeco.org','scope':'Namespaced','names':{'kind':'DB','plural':'dbs','categories':['claim']},` +
		`'versions':[{'name':'v1','served':true},{'name':'v2','served':true,'storage':true}]}}`
	hubs := strings.Replace(labelled, `'metadata':{`, `'metadata':{'ownerReferences':[{'apiVersion':'apiextensions.crossplane.io/v1',`+
		`'kind':'CompositeResourceDefinition','name':'xdbs','uid':'x','controller':true}],`, 1)
	change := func(s, from, to string) string {
		out := strings.ReplaceAll(s, from, to)
		if out == s {
			t.Fatalf("%q is not in %s", from, s)
		}
		return out
	}
	kind := func(version string, inHub bool) index.Followed {
		return index.Followed{InHub: inHub, Retained: true, Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: version, Kind: "DB"}, Resource: "dbs",
		}}
	}
	for name, tc := range map[string]struct {
		reason    string
		crd, hubs string
		want      index.Followed
	}{
		"Withdrawn":       {reason: "What Crossplane made for claims is followed on both sides.", crd: labelled, hubs: hubs, want: kind("v2", true)},
		"NotInHub":        {reason: "What the hub does not have is never watched there.", crd: labelled, want: kind("v2", false)},
		"OlderInside":     {reason: "The cluster's version is the hub's if it serves that.", crd: change(labelled, "'served':true,'storage':true", "'served':true},{'name':'v0','served':true,'storage':true"), hubs: hubs, want: kind("v2", true)},
		"NoCommon":        {reason: "Without it, each side has its own.", crd: change(labelled, "{'name':'v1','served':true},{'name':'v2'", "{'name':'v9'"), hubs: hubs, want: kind("v9", true)},
		"NotServed":       {reason: "Also while the hub serves none.", crd: labelled, hubs: change(hubs, "'served':true", "'served':false"), want: kind("v2", true)},
		"NotServedInside": {reason: "Of what the cluster does not serve, nothing can be read.", crd: change(labelled, "'served':true", "'served':false"), hubs: hubs},
		"NotCrossplanes": {
			reason: "A definition of the hub that is not an XRD's is none of the cluster's business.", crd: labelled, hubs: labelled,
		},
		"OtherController": {reason: "Nor is one that another kind controls.", crd: labelled, hubs: change(hubs, "'CompositeResourceDefinition'", "'Other'")},
		"Composite":       {reason: "A namespaced composite is a requirement, too.", crd: labelled, hubs: change(hubs, "'claim'", "'composite'"), want: kind("v2", true)},
		"ClusterComposite": {
			reason: "One that is not is none of a tenant's.", crd: labelled, hubs: change(change(hubs, "'claim'", "'composite'"), "Namespaced", "Cluster"),
		},
		"Neither": {reason: "Nor is a definition of an XRD that is for neither.", crd: labelled, hubs: change(hubs, "'claim'", "'other'")},
		"LegacyAPI": {
			reason: "What the old API published is followed, too.",
			crd:    change(labelled, "'DB'", "'DBRequirement'"), hubs: change(change(hubs, "'DB'", "'DBRequirement'"), "CompositeResourceDefinition", "InfrastructurePublication"),
			want: index.Followed{InHub: true, Retained: true, Kind: kindwatch.Kind{
				GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: "v2", Kind: "DBRequirement"}, Resource: "dbs",
			}},
		},
		"LegacyComposite": {
			reason: "But not its composites.", crd: labelled, hubs: change(hubs, "CompositeResourceDefinition", "InfrastructureDefinition"),
		},
		"Applications":  {reason: "Masthead's own kind bears its label, too, and is not one of claims.", crd: change(labelled, "acmeco.org", "apps.masthead.dev")},
		"ClusterScoped": {reason: "Claims are namespaced.", crd: change(labelled, "Namespaced", "Cluster"), hubs: hubs},
		"OtherKind":     {reason: "Another kind under the same name is another.", crd: change(labelled, "'DB'", "'Secret'"), hubs: hubs},
		"OtherName":     {reason: "The name of a definition says what it defines.", crd: change(labelled, "'plural':'dbs'", "'plural':'secrets'"), hubs: hubs},
		"Path": {
			reason: "What becomes a path has to be a part of one.",
			crd:    change(change(labelled, "'plural':'dbs'", "'plural':'../../../api/v1/secrets'"), "dbs.acmeco", "../../../api/v1/secrets.acmeco"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := RetainedKind(agenttest.Parse(t, tc.crd), NewHubDefinition(agenttest.Parse(t, tc.hubs)))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(index.Followed{})); diff != "" || ok != (tc.want != index.Followed{}) {
				t.Errorf("%s got %v (-want +got):\n%s", tc.reason, ok, diff)
			}
		})
	}
}
