// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/test/verdict"
)

// pulledDefinition is the definition of a claim kind as a workload cluster gets it.
func pulledDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return asPulled(t, (&fixture{group: "database.acmeco.org"}).crd())
}

// asPulled is what a workload cluster gets of a definition of the hub.
func asPulled(t *testing.T, hub *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hub)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	pulled := definitionFor(&unstructured.Unstructured{Object: content}, hub.Spec.Versions[0].Name)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pulled.Object, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// TestVerdictsOnClaims is about claims of an XRD v1, and in the same way about namespaced composites of an XRD v2: what is
// said of both is computed alike.
func TestVerdictsOnClaims(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "database.acmeco.org", Version: "v1alpha1", Kind: "MySQLInstance"}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	created := verdict.CreatedBy(t, pulledDefinition(t), parse(t, `{'apiVersion':'database.acmeco.org/v1alpha1','kind':'MySQLInstance',
		'metadata':{'namespace':'foo','name':'db'},'spec':{'version':'8'}}`))
	hubSays := func(conditions string) *unstructured.Unstructured {
		return parse(t, `{'metadata':{'generation':7},'status':{'conditions':[`+conditions+`]}}`)
	}
	const (
		available = `{'type':'Synced','status':'True','reason':'ReconcileSuccess'},{'type':'Ready','status':'True','reason':'Available'}`
		creating  = `{'type':'Synced','status':'True','reason':'ReconcileSuccess'},{'type':'Ready','status':'False','reason':'Creating'}`
		observed  = `{'type':'Ready','status':'True','reason':'Available','observedGeneration':7}`
		behind    = `{'type':'Ready','status':'True','reason':'Available','observedGeneration':6}`
		paused    = `{'type':'Ready','status':'True','reason':'Available'},{'type':'Stalled','status':'True','reason':'Quota','message':'No room'}`
	)
	show := func(claim, hub *unstructured.Unstructured, p *problem) *unstructured.Unstructured {
		out := claim.DeepCopy()
		out.Object["status"] = statusOf(claim, hub, p == nil, condition(claim, p), now)
		return out
	}
	provisioned := show(created, hubSays(available), nil)
	edited := provisioned.DeepCopy()
	edited.SetGeneration(2)
	ended := provisioned.DeepCopy()
	ended.SetDeletionTimestamp(&metav1.Time{Time: now})
	taken := &problem{reason: ReasonConflict, message: "taken"}

	table := verdict.Table{Kind: kind.GroupKind(), Cases: map[string]verdict.Case{
		"Created":     {Reason: "Nobody has looked at it yet.", Object: created, Want: verdict.InProgress},
		"Provisioned": {Reason: "The hub holds it, and Crossplane says that it is ready.", Object: provisioned, Want: verdict.Current},
		"Edited":      {Reason: "Nobody has looked at the change yet.", Object: edited, Want: verdict.InProgress},
		"Ended":       {Reason: "It goes.", Object: ended, Want: verdict.Terminating},
		"NoStatus": {
			Reason: "The hub holds it, and Crossplane has not said anything yet.", Object: show(created, hubSays(""), nil), Want: verdict.InProgress,
		},
		"Creating": {Reason: "Crossplane is at it.", Object: show(created, hubSays(creating), nil), Want: verdict.InProgress},
		"Observed": {Reason: "Crossplane has seen the latest change.", Object: show(edited, hubSays(observed), nil), Want: verdict.Current},
		"Behind": {
			Reason: "Ready is about what the claim said before.", Object: show(edited, hubSays(behind), nil), Want: verdict.InProgress,
		},
		"StalledInTheHub": {Reason: "The composition says so.", Object: show(created, hubSays(paused), nil), Want: verdict.Failed},
		"RefusedAfterReady": {
			Reason: "What is ready in the hub is not what the claim says now.", Object: show(edited, hubSays(available), taken), Want: verdict.Failed,
		},
		"AcceptedAfterRefused": {
			Reason: "What was refused is forgotten.", Object: show(show(created, nil, taken), hubSays(available), nil), Want: verdict.Current,
		},
		"AcceptedBeforeUpgrade": {
			Reason: "A claim that an older Masthead has looked at has conditions and no generation.", Want: verdict.Current,
			Object: show(parse(t, `{'metadata':{'generation':3},'status':{'observedGeneration':-1,'conditions':[`+available+`,
				{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.','observedGeneration':3}]}}`),
				hubSays(available), nil),
		},
	}}
	// Each reason for which a claim is not synchronised, without an object in the hub and with one that was ready before.
	for reason, want := range map[string]verdict.Verdict{
		ReasonConflict: verdict.Failed, ReasonTargetNamespaceMissing: verdict.Failed, ReasonTargetNamespaceNotAllowed: verdict.Failed,
		ReasonTargetNamespaceInvalid: verdict.Failed, ReasonTargetNamespaceChanged: verdict.Failed, ReasonMoving: verdict.InProgress,
		ReasonCredentialsMissing: verdict.Failed, ReasonCredentialsInvalid: verdict.Failed, ReasonCredentialsRejected: verdict.Failed,
		ReasonImpersonationForbidden: verdict.Failed, ReasonForbidden: verdict.Failed, ReasonRejected: verdict.Failed,
		ReasonClassNotFound: verdict.Failed, ReasonInvalidClass: verdict.Failed, ReasonKindNotOffered: verdict.Failed,
		ReasonKindNotServed: verdict.InProgress, ReasonSecretConflict: verdict.Failed, ReasonSecretNotControlled: verdict.Failed,
		ReasonSecretMissing: verdict.InProgress, ReasonSecretRejected: verdict.Failed, ReasonWorkloadForbidden: verdict.Failed,
		ReasonWorkloadRejected: verdict.Failed, ReasonInvalidDeletionPolicy: verdict.Failed, ReasonDeleting: verdict.InProgress,
		ReasonRecreating: verdict.InProgress, ReasonSyncFailing: verdict.InProgress, ReasonHubObjectDeleted: verdict.Failed,
		ReasonHubUnavailable: verdict.InProgress, ReasonNamespaceRecreated: verdict.Failed, ReasonSecretWithheld: verdict.Failed,
		ReasonReferencesUnresolved: verdict.InProgress,
	} {
		unknown := reason == ReasonSyncFailing || reason == ReasonHubUnavailable
		p := &problem{reason: reason, message: "It is so", unknown: unknown}
		why := "It is not what the user asked for: " + reason
		table.Cases[reason] = verdict.Case{Reason: why, Object: show(created, nil, p), Want: want}
		table.Cases[reason+"AfterReady"] = verdict.Case{Reason: why, Object: show(provisioned, hubSays(available), p), Want: want}
	}
	table.Check(t)

	reasons := verdict.Reasons(t, "pkg/controllers/agent")
	for _, elsewhere := range []string{"reason of the event", "Reasons why the definition"} {
		for name := range verdict.Reasons(t, "pkg/controllers/agent", elsewhere) {
			delete(reasons, name)
		}
	}
	verdict.Covers(t, reasons, nil, table.Objects()...)
}

func TestVerdictsOnPulledDefinitions(t *testing.T) {
	kind := apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition")
	established := func(status apiextensionsv1.ConditionStatus) *unstructured.Unstructured {
		crd := pulledDefinition(t)
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
			{Type: apiextensionsv1.Established, Status: status, Reason: "Installing"},
		}
		return verdict.Object(t, kind, crd)
	}
	verdict.Table{Kind: kind.GroupKind(), BuiltIn: true, Cases: map[string]verdict.Case{
		"Established": {Reason: "Claims can be created.", Object: established("True"), Want: verdict.Current},
		"Created":     {Reason: "The API server has not taken it up yet.", Object: established("False"), Want: verdict.InProgress},
	}}.Check(t)
}

// TestObservesGeneration sees that a definition gets the default only where every object stays valid with it.
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
			spec := parse(t, fmt.Sprintf(`{'kind':'x','versions':[{'name':'v1','schema':{'openAPIV3Schema':{'type':'object','properties':{'status':%s}%s}}%s}]}`,
				tc.status, tc.root, subresources)).Object
			observesGeneration(spec)
			version, _ := versionsOf(&unstructured.Unstructured{Object: map[string]any{"spec": maps.Clone(spec)}})[0].(map[string]any)
			got, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "status")
			want := parse(t, `{'kind':'x','status':`+tc.want+`}`).Object["status"]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
