// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/verdict"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestVerdictsOnEnrollmentClasses(t *testing.T) {
	kind := fleetv1alpha1.GroupVersion.WithKind("EnrollmentClass")
	badSelector := func(c *fleetv1alpha1.EnrollmentClass) {
		c.Spec.AllowedNamespaces = &fleetv1alpha1.AllowedNamespaces{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is", Values: []string{"a"}}},
		}}
	}
	class := func(n classCount, modify ...func(*fleetv1alpha1.EnrollmentClass)) *unstructured.Unstructured {
		c := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "gold", Generation: 3}}
		for _, m := range modify {
			m(c)
		}
		c.Status = classStatus(c, n, now)
		return verdict.Object(t, kind, c)
	}
	edited := class(classCount{1, 1})
	edited.SetGeneration(4)
	deleting := class(classCount{1, 1})
	deleting.SetDeletionTimestamp(&metav1.Time{Time: now})
	table := verdict.Table{Kind: kind.GroupKind(), Cases: map[string]verdict.Case{
		"Created": {
			Reason: "It has not been reconciled yet.", Want: verdict.InProgress,
			Object: verdict.Created(t, "config/crd/bases/fleet.masthead.dev_enrollmentclasses.yaml", class(classCount{})),
		},
		"Edited":     {Reason: "The change has not been reconciled yet.", Object: edited, Want: verdict.InProgress},
		"NoClusters": {Reason: "It waits to be used, which is what it is for.", Object: class(classCount{}), Want: verdict.Current},
		"Connected":  {Reason: "All is well.", Object: class(classCount{2, 2}), Want: verdict.Current},
		"OneDead": {
			Reason: "The class is as its author wants it; a dead cluster must not fail the hub's own roll-out.",
			Object: class(classCount{20, 19}), Want: verdict.Current,
		},
		"AllDead": {Reason: "The same holds for all of them.", Object: class(classCount{2, 0}), Want: verdict.Current},
		"InvalidSelector": {
			Reason: "It selects nothing until it is corrected.", Object: class(classCount{}, badSelector), Want: verdict.Failed,
		},
		"InvalidTargetSelector": {
			Reason: "The same for the namespaces that may be chosen.", Want: verdict.Failed,
			Object: class(classCount{}, func(c *fleetv1alpha1.EnrollmentClass) {
				badSelector(c)
				c.Spec.Agent.AllowedTargetNamespaces, c.Spec.AllowedNamespaces = c.Spec.AllowedNamespaces, nil
			}),
		},
		"Corrected": {
			Reason: "What was wrong with it before is forgotten.", Want: verdict.Current,
			Object: class(classCount{}, func(c *fleetv1alpha1.EnrollmentClass) {
				broken := c.DeepCopy()
				badSelector(broken)
				c.Status = classStatus(broken, classCount{}, before)
			}),
		},
		"Upgraded": {
			Reason: "An older Masthead said of the class what it should have said of its clusters.", Want: verdict.Current,
			Object: class(classCount{2, 1}, func(c *fleetv1alpha1.EnrollmentClass) {
				c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "ClustersNotConnected"}}
			}),
		},
		"Deleting": {Reason: "It goes.", Object: deleting, Want: verdict.Terminating},
	}}
	table.Check(t)
	verdict.Covers(t, verdict.Reasons(t, "apis/fleet/v1alpha1", "of an EnrollmentClass"), nil, table.Objects()...)
}

func TestVerdictsOnClusterProfiles(t *testing.T) {
	kind := inventoryv1alpha1.GroupVersion.WithKind(inventoryv1alpha1.Kind)
	profile := func(refused map[string]string, modify ...func(*connection.Cluster)) *unstructured.Unstructured {
		p := published()
		p.Status = desiredStatus(testKey, testCluster(modify...), refused, nil, 1, now)
		return verdict.Object(t, kind, p)
	}
	healthy := func(h metav1.ConditionStatus) func(*connection.Cluster) {
		return func(c *connection.Cluster) { c.ControlPlaneHealthy = h }
	}
	state := func(s connection.State, reason string) func(*connection.Cluster) {
		return func(c *connection.Cluster) { c.State, c.Reason, c.Message = s, reason, "It is so" }
	}
	table := verdict.Table{Kind: kind.GroupKind(), Report: true, Cases: map[string]verdict.Case{
		"Connected": {Reason: "All is well.", Object: profile(nil), Want: verdict.Current},
		"Unhealthy": {
			Reason: "The API server answers and is not ready: it may be starting.",
			Object: profile(nil, healthy(metav1.ConditionFalse)), Want: verdict.InProgress,
		},
		"NotProbed": {Reason: "It was not probed yet.", Object: profile(nil, healthy(metav1.ConditionUnknown)), Want: verdict.InProgress},
		"KindsNotSynced": {
			Reason: "Some kinds are not known, for reasons that may pass; what the connection and the definitions are for is there.",
			Want:   verdict.Current,
			Object: profile(nil, func(c *connection.Cluster) {
				c.Unsynced = []kindwatch.Unsynced{
					{Kind: "pods", Cause: kindwatch.CauseListTimedOut}, {Kind: "secrets", Cause: kindwatch.CauseWatchFailing},
				}
			}),
		},
		"DefinitionsRefused": {
			Reason: "What the class offers is not there.",
			Object: profile(map[string]string{"dbs.acmeco.org": "ForeignDefinition"}), Want: verdict.Failed,
		},
		"KindsNotKept": {
			Reason: "Some kinds of the cluster are not watched.", Want: verdict.Failed,
			Object: profile(nil, func(c *connection.Cluster) {
				c.Refused = connection.Refusal{Reason: fleetv1alpha1.ReasonMemoryShareExceeded, Message: "It is so"}
			}),
		},
		"Degraded": {
			Reason: "Probes fail, and it is not decided yet whether the cluster is lost.",
			Object: profile(nil, state(connection.StateDegraded, fleetv1alpha1.ReasonDialError)), Want: verdict.InProgress,
		},
	}}
	// A connection that is refused or lost shows its reason. A state that passes by itself, or that was requested, is not
	// a failure.
	lost := map[string]verdict.Verdict{
		fleetv1alpha1.ReasonConnecting: verdict.InProgress, fleetv1alpha1.ReasonDraining: verdict.InProgress,
		fleetv1alpha1.ReasonNotReady: verdict.InProgress, fleetv1alpha1.ReasonPaused: verdict.Suspended,
		fleetv1alpha1.ReasonDialError: verdict.Failed, fleetv1alpha1.ReasonTLSError: verdict.Failed,
		fleetv1alpha1.ReasonEndpointDenied: verdict.Failed, fleetv1alpha1.ReasonClassFull: verdict.Failed,
		fleetv1alpha1.ReasonUnauthorized: verdict.Failed, fleetv1alpha1.ReasonForbidden: verdict.Failed,
		fleetv1alpha1.ReasonBadKubeconfig: verdict.Failed, fleetv1alpha1.ReasonNoCredentials: verdict.Failed,
		fleetv1alpha1.ReasonDuplicateCluster: verdict.Failed, fleetv1alpha1.ReasonBadIdentifier: verdict.Failed,
		fleetv1alpha1.ReasonClusterIdentityChanged: verdict.Failed, fleetv1alpha1.ReasonHubItself: verdict.Failed,
		fleetv1alpha1.ReasonProbeFailed: verdict.Failed, fleetv1alpha1.ReasonClassNotFound: verdict.Failed,
		fleetv1alpha1.ReasonNamespaceNotAllowed: verdict.Failed, fleetv1alpha1.ReasonEngageFailed: verdict.Failed,
		fleetv1alpha1.ReasonPanicked:      verdict.Failed,
		fleetv1alpha1.ReasonAnswerRefused: verdict.Failed, fleetv1alpha1.ReasonOtherHub: verdict.Failed, fleetv1alpha1.ReasonMemoryShareExceeded: verdict.Failed,
		fleetv1alpha1.ReasonEventsDelayed: verdict.Failed,
	}
	for reason, want := range lost {
		table.Cases["Lost"+reason] = verdict.Case{
			Reason: "The connection is not there: " + reason, Want: want,
			Object: profile(nil, state(connection.StateBackoff, reason)),
		}
	}
	table.Check(t)
	verdict.Covers(t, verdict.Reasons(t, "apis/fleet/v1alpha1", "of a ClusterProfile"), map[string]string{
		"ReasonUnenrolled": "A cluster that is not enrolled has no ClusterProfile.",
	}, table.Objects()...)
}
