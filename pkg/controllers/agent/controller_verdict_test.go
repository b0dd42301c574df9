// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/verdict"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// pulledDefinition is the definition of a claim kind as installed in a workload cluster.
func pulledDefinition(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	return asPulled(t, (&agenttest.Fixture{Group: "database.acmeco.org"}).ClaimCRD())
}

// asPulled returns a hub definition as installed in a workload cluster.
func asPulled(t *testing.T, hub *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(hub)
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	pulled := definition.DefinitionFor(&unstructured.Unstructured{Object: content}, hub.Spec.Versions[0].Name)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pulled.Object, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

// TestVerdictsOnClaims covers claims of an XRD v1 and namespaced composites of an XRD v2: the verdicts on both are
// computed alike.
func TestVerdictsOnClaims(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "database.acmeco.org", Version: "v1alpha1", Kind: "MySQLInstance"}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	created := verdict.CreatedBy(t, pulledDefinition(t), agenttest.Parse(t, `{'apiVersion':'database.acmeco.org/v1alpha1','kind':'MySQLInstance',
		'metadata':{'namespace':'foo','name':'db'},'spec':{'version':'8'}}`))
	hubSays := func(conditions string) *unstructured.Unstructured {
		return agenttest.Parse(t, `{'metadata':{'generation':7},'status':{'conditions':[`+conditions+`]}}`)
	}
	const (
		available = `{'type':'Synced','status':'True','reason':'ReconcileSuccess'},{'type':'Ready','status':'True','reason':'Available'}`
		creating  = `{'type':'Synced','status':'True','reason':'ReconcileSuccess'},{'type':'Ready','status':'False','reason':'Creating'}`
		observed  = `{'type':'Ready','status':'True','reason':'Available','observedGeneration':7}`
		behind    = `{'type':'Ready','status':'True','reason':'Available','observedGeneration':6}`
		paused    = `{'type':'Ready','status':'True','reason':'Available'},{'type':'Stalled','status':'True','reason':'Quota','message':'No room'}`
	)
	show := func(claim, hub *unstructured.Unstructured, p *condition.Error) *unstructured.Unstructured {
		out := claim.DeepCopy()
		out.Object["status"] = propagation.BuildStatus(claim, hub, p == nil, propagation.Condition(claim, p), now)
		return out
	}
	provisioned := show(created, hubSays(available), nil)
	edited := provisioned.DeepCopy()
	edited.SetGeneration(2)
	ended := provisioned.DeepCopy()
	ended.SetDeletionTimestamp(&metav1.Time{Time: now})
	taken := &condition.Error{Reason: fleetv1alpha1.ReasonConflict, Message: "taken"}

	table := verdict.Table{Kind: kind.GroupKind(), Cases: map[string]verdict.Case{
		"Created":     {Reason: "It has not been reconciled yet.", Object: created, Want: verdict.InProgress},
		"Provisioned": {Reason: "The hub holds it, and Crossplane says that it is ready.", Object: provisioned, Want: verdict.Current},
		"Edited":      {Reason: "The change has not been reconciled yet.", Object: edited, Want: verdict.InProgress},
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
			Object: show(agenttest.Parse(t, `{'metadata':{'generation':3},'status':{'observedGeneration':-1,'conditions':[`+available+`,
				{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.','observedGeneration':3}]}}`),
				hubSays(available), nil),
		},
	}}
	// Each reason for which a claim is not synchronised, without an object in the hub and with one that was ready before.
	for becauseOf, want := range map[string]verdict.Verdict{
		fleetv1alpha1.ReasonConflict: verdict.Failed, fleetv1alpha1.ReasonTargetNamespaceMissing: verdict.Failed, fleetv1alpha1.ReasonTargetNamespaceNotAllowed: verdict.Failed,
		fleetv1alpha1.ReasonTargetNamespaceInvalid: verdict.Failed, fleetv1alpha1.ReasonTargetNamespaceChanged: verdict.Failed, fleetv1alpha1.ReasonMoving: verdict.InProgress,
		fleetv1alpha1.ReasonCredentialsMissing: verdict.Failed, fleetv1alpha1.ReasonCredentialsInvalid: verdict.Failed, fleetv1alpha1.ReasonCredentialsRejected: verdict.Failed,
		fleetv1alpha1.ReasonImpersonationForbidden: verdict.Failed, fleetv1alpha1.ReasonHubForbidden: verdict.Failed, fleetv1alpha1.ReasonRejected: verdict.Failed,
		fleetv1alpha1.ReasonClassNotFound: verdict.Failed, fleetv1alpha1.ReasonInvalidClass: verdict.Failed, fleetv1alpha1.ReasonKindNotOffered: verdict.Failed,
		fleetv1alpha1.ReasonKindNotServed: verdict.InProgress, fleetv1alpha1.ReasonSecretConflict: verdict.Failed, fleetv1alpha1.ReasonSecretNotControlled: verdict.Failed,
		fleetv1alpha1.ReasonSecretMissing: verdict.InProgress, fleetv1alpha1.ReasonSecretRejected: verdict.Failed, fleetv1alpha1.ReasonWorkloadForbidden: verdict.Failed,
		fleetv1alpha1.ReasonWorkloadRejected: verdict.Failed, fleetv1alpha1.ReasonInvalidDeletionPolicy: verdict.Failed, fleetv1alpha1.ReasonDeleting: verdict.InProgress,
		fleetv1alpha1.ReasonRecreating: verdict.InProgress, fleetv1alpha1.ReasonSyncFailing: verdict.InProgress, fleetv1alpha1.ReasonHubObjectDeleted: verdict.Failed,
		fleetv1alpha1.ReasonHubUnavailable: verdict.InProgress, fleetv1alpha1.ReasonNamespaceRecreated: verdict.Failed, fleetv1alpha1.ReasonSecretWithheld: verdict.Failed,
		fleetv1alpha1.ReasonReferencesUnresolved: verdict.InProgress, fleetv1alpha1.ReasonReconcilePaused: verdict.Suspended,
		fleetv1alpha1.ReasonClaimLimitReached: verdict.Failed,
	} {
		unknown := becauseOf == fleetv1alpha1.ReasonSyncFailing || becauseOf == fleetv1alpha1.ReasonHubUnavailable
		p := &condition.Error{Reason: becauseOf, Message: "It is so", Unknown: unknown}
		why := "It is not what the user requested: " + becauseOf
		table.Cases[becauseOf] = verdict.Case{Reason: why, Object: show(created, nil, p), Want: want}
		table.Cases[becauseOf+"AfterReady"] = verdict.Case{Reason: why, Object: show(provisioned, hubSays(available), p), Want: want}
	}
	table.Check(t)

	reasons := verdict.Reasons(t, "apis/fleet/v1alpha1", "condition AgentSynced of a claim", "condition Reconciling of a claim")
	reasons["ReasonClassNotFound"] = fleetv1alpha1.ReasonClassNotFound
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
