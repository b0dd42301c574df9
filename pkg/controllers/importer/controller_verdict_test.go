// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/verdict"
)

// TestVerdictsOnClusterImports checks that, for each state of an import, tools that wait come to the verdict that a
// person would.
func TestVerdictsOnClusterImports(t *testing.T) {
	now := time.Now()
	kind := fleetv1alpha1.GroupVersion.WithKind("ClusterImport")
	reached := []metav1.Condition{
		{Type: fleetv1alpha1.ConditionPreflight, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonPreflightPassed},
		{Type: fleetv1alpha1.ConditionAdmissionEnforced, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonCanaryDenied},
		{Type: fleetv1alpha1.ConditionObserved, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonObserved},
		{Type: fleetv1alpha1.ConditionReflected, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonReflected},
		{Type: fleetv1alpha1.ConditionKubeconfigReady, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonKubeconfigWritten},
		{Type: fleetv1alpha1.ConditionNodePoolsComplete, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAllPoolsShown},
		{Type: fleetv1alpha1.ConditionWorkloadAccess, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAccessReadOnly},
	}
	state := func(change ...metav1.Condition) *unstructured.Unstructured {
		imp := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: "customers", Name: "shop", Generation: 2}}
		var res result
		for _, c := range append(append([]metav1.Condition{}, reached...), change...) {
			res.set(c)
		}
		imp.Status = buildStatus(newScope(imp), res, now)
		return verdict.Object(t, kind, imp)
	}
	no := func(of, reason string) metav1.Condition {
		status := metav1.ConditionFalse
		if of == fleetv1alpha1.ConditionAlreadyManaged {
			status = metav1.ConditionTrue
		}
		return metav1.Condition{Type: of, Status: status, Reason: reason, Message: "It is so"}
	}
	deleting := func() *unstructured.Unstructured {
		imp := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{
			Namespace: "customers", Name: "shop", Generation: 2, DeletionTimestamp: &metav1.Time{Time: now},
		}}
		imp.Status = buildStatus(newScope(imp), result{}, now)
		return verdict.Object(t, kind, imp)
	}
	table := verdict.Table{Kind: kind.GroupKind(), Cases: map[string]verdict.Case{
		"Created": {
			Reason: "It has not been reconciled yet.", Want: verdict.InProgress,
			Object: verdict.Created(t, "config/crd/bases/fleet.masthead.dev_clusterimports.yaml", verdict.Object(t, kind, &fleetv1alpha1.ClusterImport{})),
		},
		"Imported": {Reason: "The cluster is reflected.", Object: state(), Want: verdict.Current},
		"Deleting": {Reason: "It goes.", Object: deleting(), Want: verdict.Terminating},
		"NotRequested": {
			Reason: "The spec requests no kubeconfig.", Want: verdict.Current,
			Object: state(no(fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigNotRequested)),
		},
		"TagsOfOthers": {
			Reason: "The import goes on.", Want: verdict.Current,
			Object: state(metav1.Condition{
				Type: fleetv1alpha1.ConditionAlreadyManaged, Status: metav1.ConditionFalse,
				Reason: fleetv1alpha1.ReasonTagsOfOthers, Message: "It is so",
			}),
		},
	}}
	for reason, of := range map[string]string{
		fleetv1alpha1.ReasonKindsMissing: fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonKindsInactive: fleetv1alpha1.ConditionPreflight,
		fleetv1alpha1.ReasonKindsTooOld: fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonRightsMissing: fleetv1alpha1.ConditionPreflight,
		fleetv1alpha1.ReasonProviderConfigNotFound: fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonProviderConfigNotAllowed: fleetv1alpha1.ConditionPreflight,
		fleetv1alpha1.ReasonInvalidSpec: fleetv1alpha1.ConditionPreflight, fleetv1alpha1.ReasonCanaryFailed: fleetv1alpha1.ConditionAdmissionEnforced,
		fleetv1alpha1.ReasonNameTaken: fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonImportedTwice: fleetv1alpha1.ConditionAlreadyManaged,
		fleetv1alpha1.ReasonManagedByCrossplane: fleetv1alpha1.ConditionAlreadyManaged, fleetv1alpha1.ReasonManagedByClusterAPI: fleetv1alpha1.ConditionAlreadyManaged,
		fleetv1alpha1.ReasonProviderError: fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonUnexpectedPolicy: fleetv1alpha1.ConditionObserved,
		fleetv1alpha1.ReasonUnexpectedIdentity: fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonReflectionRefused: fleetv1alpha1.ConditionReflected,
		fleetv1alpha1.ReasonCredentialsNotAllowed:       fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonHubServiceAccountNotAllowed: fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonKubeconfigRefused:           fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonEndpointNotAllowed: fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonTokenRefused: fleetv1alpha1.ConditionKubeconfigReady, fleetv1alpha1.ReasonKubeconfigExpired: fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonServiceAccountNotFound:     fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonServiceAccountTokenRefused: fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonServiceAccountTokenInvalid: fleetv1alpha1.ConditionKubeconfigReady,
	} {
		table.Cases[reason] = verdict.Case{Reason: "A user has to act: " + reason, Object: state(no(of, reason)), Want: verdict.Failed}
	}
	for reason, of := range map[string]string{
		fleetv1alpha1.ReasonWaitingForProvider: fleetv1alpha1.ConditionObserved, fleetv1alpha1.ReasonCredentialsNotFound: fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonServiceAccountTokenUnavailable: fleetv1alpha1.ConditionKubeconfigReady,
		fleetv1alpha1.ReasonHubServiceAccountNotFound:      fleetv1alpha1.ConditionKubeconfigReady,
	} {
		table.Cases[reason] = verdict.Case{Reason: "It is on its way: " + reason, Object: state(no(of, reason)), Want: verdict.InProgress}
	}
	for reason, of := range map[string]string{
		fleetv1alpha1.ReasonPoolsMissing: fleetv1alpha1.ConditionNodePoolsComplete, fleetv1alpha1.ReasonPoolsUnknown: fleetv1alpha1.ConditionNodePoolsComplete,
		fleetv1alpha1.ReasonAccessNone: fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessUnknown: fleetv1alpha1.ConditionWorkloadAccess,
		fleetv1alpha1.ReasonAccessWrite: fleetv1alpha1.ConditionWorkloadAccess, fleetv1alpha1.ReasonAccessAdmin: fleetv1alpha1.ConditionWorkloadAccess,
	} {
		table.Cases[reason] = verdict.Case{
			Reason: "The cluster is reflected; what others make of it does not fail the hub's own roll-out: " + reason, Object: state(no(of, reason)), Want: verdict.Current,
		}
	}
	table.Check(t)
	verdict.Covers(t, verdict.Reasons(t, "apis/fleet/v1alpha1", "of a ClusterImport"), nil, table.Objects()...)
}
