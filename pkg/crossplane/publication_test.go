// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/internal/objecttest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestPublicationOfByScope(t *testing.T) {
	xrd := func(spec, conditions string) string {
		return `{'apiVersion':'apiextensions.crossplane.io/v1','kind':'CompositeResourceDefinition','metadata':{'name':'caches.acmeco.org'},` +
			`'spec':{'group':'acmeco.org','names':{'kind':'Cache','plural':'caches'},'versions':[{'name':'v1','served':true,'referenceable':true}]` + spec +
			`},'status':{'conditions':[` + conditions + `]}}`
	}
	const (
		established = `{'type':'Established','status':'True'}`
		offered     = `,{'type':'Offered','status':'True'}`
		claims      = `,'claimNames':{'kind':'CacheClaim','plural':'cacheclaims'}`
	)
	labelled := func(value, spec string) string {
		labels := `'labels':{'agent.masthead.dev/publish':'` + value + `'},'name'`
		return strings.Replace(xrd(spec, established+offered), `'name'`, labels, 1)
	}
	published := func(kind, plural string, f Form) Publication {
		return Publication{publisher: "CompositeResourceDefinition/caches.acmeco.org", Form: f, Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: "v1", Kind: kind}, Resource: plural,
		}}
	}
	for name, tc := range map[string]struct {
		reason string
		xrd    string
		want   Publication
	}{
		"Namespaced": {
			reason: "A namespaced composite is what users create, so that it is published itself.",
			xrd:    xrd(`,'scope':'Namespaced'`, established), want: published("Cache", "caches", FormComposite),
		},
		"NamespacedNotEstablished": {
			reason: "Before Crossplane has established the CRD there is nothing to pull.",
			xrd:    xrd(`,'scope':'Namespaced'`, `{'type':'Established','status':'False'}`),
		},
		"NamespacedWithForgedClaim": {
			reason: "The scope decides: claim names beside it, which the schema forbids, publish nothing else.",
			xrd:    xrd(`,'scope':'Namespaced'`+claims, established+offered), want: published("Cache", "caches", FormComposite),
		},
		"Cluster": {
			reason: "A cluster-scoped composite belongs to no tenant.", xrd: xrd(`,'scope':'Cluster'`, established),
		},
		"LegacyCluster": {
			reason: "Of a legacy composite the claim is published.",
			xrd:    xrd(`,'scope':'LegacyCluster'`+claims, established+offered), want: published("CacheClaim", "cacheclaims", FormClaim),
		},
		"LegacyClusterWithoutClaim": {
			reason: "Without a claim nothing is, least of all the cluster-scoped composite.", xrd: xrd(`,'scope':'LegacyCluster'`, established+offered),
		},
		"NoScope": {
			reason: "An XRD from before there were scopes is a legacy one.",
			xrd:    xrd(claims, established+offered), want: published("CacheClaim", "cacheclaims", FormClaim),
		},
		"NoScopeNoClaim": {
			reason: "No composite is published: the default scope of v2 does not apply.", xrd: xrd(``, established+offered),
		},
		"Labelled": {
			reason: "A label that says what is so anyway changes nothing.",
			xrd:    labelled("true", `,'scope':'Namespaced'`), want: published("Cache", "caches", FormComposite),
		},
		"Withheld":      {reason: "The administrator keeps it in the hub.", xrd: labelled("false", `,'scope':'Namespaced'`)},
		"WithheldClaim": {reason: "Claims, too.", xrd: labelled("false", claims)},
		"Misspelt":      {reason: "What could mean anything offers nothing.", xrd: labelled("False", `,'scope':'Namespaced'`)},
		"WithoutValue":  {reason: "Nor does a label without a value.", xrd: labelled("", claims)},
		"UnknownScope": {
			reason: "A scope that is not known is not published.", xrd: xrd(`,'scope':'Galactic'`+claims, established+offered),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParsePublication(objecttest.Parse(t, tc.xrd))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Publication{})); diff != "" || ok != (tc.want != Publication{}) {
				t.Errorf("%s got %v (-want +got):\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestParseLegacyPublication(t *testing.T) {
	const established = `{'type':'Established','status':'True'}`
	published := func(version, plural string) Publication {
		return Publication{publisher: "InfrastructurePublication/pub", Form: FormClaim, Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: version, Kind: "MySQLInstanceRequirement"}, Resource: plural,
		}}
	}
	for name, tc := range map[string]struct {
		reason, metadata, condition, template string
		want                                  Publication
	}{
		"Published": {
			reason: "The kind has the suffix, and the plural is made of the singular.", condition: established,
			template: `'version':'v1alpha1','names':{'kind':'MySQLInstance','singular':'mysqlinstance','plural':'mysqlinstances'}`,
			want:     published("v1alpha1", "mysqlinstancerequirements"),
		},
		"NoSingular": {
			reason: "Kubernetes defaults the singular to the kind.", condition: established,
			template: `'version':'v1alpha1','names':{'kind':'MySQLInstance','plural':'mysqlinstances'}`,
			want:     published("v1alpha1", "mysqlinstancerequirements"),
		},
		"Available": {
			reason: "Crossplane 0.10 had another condition.", condition: `{'type':'Ready','status':'True'}`,
			template: `'version':'v1alpha1','names':{'kind':'MySQLInstance','singular':'sql'}`, want: published("v1alpha1", "sqlrequirements"),
		},
		"Versions": {
			reason: "The stored version travels.", condition: established,
			template: `'versions':[{'name':'v1','served':true},{'name':'v2','served':true,'storage':true}],'names':{'kind':'MySQLInstance','singular':'sql'}`,
			want:     published("v2", "sqlrequirements"),
		},
		"NotYet":    {reason: "It is not offered before its CRD is established.", condition: `{'type':'Synced','status':'True'}`, template: `'version':'v1','names':{'kind':'MySQLInstance'}`},
		"Deleting":  {reason: "It is being withdrawn.", metadata: `,'deletionTimestamp':'2026-01-01T00:00:00Z'`, condition: established, template: `'version':'v1','names':{'kind':'MySQLInstance'}`},
		"NoKind":    {reason: "A definition that says nothing publishes nothing.", condition: established, template: `'version':'v1'`},
		"Malformed": {reason: "Nothing panics.", condition: established, template: `'version':3,'versions':'v1','names':['x']`},
	} {
		t.Run(name, func(t *testing.T) {
			p := objecttest.Parse(t, `{'apiVersion':'apiextensions.crossplane.io/v1alpha1','kind':'InfrastructurePublication','metadata':{'name':'pub'`+tc.metadata+
				`},'spec':{'infrastructureDefinitionRef':{'name':'def'}},'status':{'conditions':[`+tc.condition+`]}}`)
			d := objecttest.Parse(t, `{'apiVersion':'apiextensions.crossplane.io/v1alpha1','kind':'InfrastructureDefinition','metadata':{'name':'def'},`+
				`'spec':{'crdSpecTemplate':{'group':'acmeco.org',`+tc.template+`}}}`)
			if got := DefinitionPublished(p); got != "def" {
				t.Errorf("want the definition %q, got %q", "def", got)
			}
			got, ok := ParseLegacyPublication(p, d)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Publication{})); diff != "" || ok != (tc.want != Publication{}) {
				t.Errorf("%s got %v (-want +got):\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestParsePublication(t *testing.T) {
	const offeredStatus = `'status':{'conditions':[{'type':'Established','status':'True'},{'type':'Offered','status':'True'}]}`
	xrd := func(spec, status, metadata string) string {
		return `{'apiVersion':'apiextensions.crossplane.io/v1','kind':'CompositeResourceDefinition','metadata':{'name':'xdbs.acmeco.org'` +
			metadata + `},'spec':{'group':'acmeco.org',` + spec + `},` + status + `}`
	}
	const names = `'claimNames':{'kind':'DB','plural':'dbs'}`
	kind := func(version string) Publication {
		return Publication{publisher: "CompositeResourceDefinition/xdbs.acmeco.org", Form: FormClaim, Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: version, Kind: "DB"}, Resource: "dbs",
		}}
	}
	for name, tc := range map[string]struct {
		reason string
		xrd    string
		want   Publication
	}{
		"Offered": {
			reason: "An XRD whose claim is offered publishes it in the version that is stored.",
			xrd:    xrd(names+`,'versions':[{'name':'v1alpha1','served':true},{'name':'v1','served':true,'referenceable':true}]`, offeredStatus, ""),
			want:   kind("v1"),
		},
		"StoredVersionNotServed": {
			reason: "If the stored version is not served, the first that is served has to do.",
			xrd:    xrd(names+`,'versions':[{'name':'v2','referenceable':true},{'name':'v1beta1','served':true},{'name':'v1','served':true}]`, offeredStatus, ""),
			want:   kind("v1beta1"),
		},
		"NoVersionServed": {
			reason: "A kind that is served in no version is not published.",
			xrd:    xrd(names+`,'versions':[{'name':'v2','referenceable':true}]`, offeredStatus, ""),
		},
		"NoClaim": {
			reason: "An XRD without claimNames, such as each one with scope Namespaced, publishes no claim kind.",
			xrd:    xrd(`'versions':[{'name':'v1','served':true,'referenceable':true}]`, offeredStatus, ""),
		},
		"NotOfferedYet": {
			reason: "As long as Crossplane has not established the claim CRD, there is nothing to pull.",
			xrd:    xrd(names+`,'versions':[{'name':'v1','served':true}]`, `'status':{'conditions':[{'type':'Established','status':'True'},{'type':'Offered','status':'False'}]}`, ""),
		},
		"Deleting": {
			reason: "An XRD that is being deleted publishes no claims, even while its conditions are still True.",
			xrd:    xrd(names+`,'versions':[{'name':'v1','served':true}]`, offeredStatus, `,'deletionTimestamp':'2026-01-01T00:00:00Z'`),
		},
		"Malformed": {
			reason: "What is not what it should be is not published, and nothing panics.",
			xrd:    xrd(`'claimNames':'x','versions':['v1',3]`, offeredStatus, ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := ParsePublication(objecttest.Parse(t, tc.xrd))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Publication{})); diff != "" || ok != (tc.want != Publication{}) {
				t.Errorf("%s got %v (-want +got):\n%s", tc.reason, ok, diff)
			}
		})
	}
}
