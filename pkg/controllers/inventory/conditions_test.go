// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestConditions(t *testing.T) {
	const noConnection = "There is no working connection"
	unknown := func(conditionType string) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionUnknown, Reason: fleetv1alpha1.ReasonNotConnected, Message: noConnection,
		}
	}
	allServed := metav1.Condition{
		Type: fleetv1alpha1.ConditionKindsServed, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAllServed,
		Message: "Every kind that is needed is served",
	}
	synced := metav1.Condition{
		Type: fleetv1alpha1.ConditionKindsSynced, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonAllSynced, Message: "Every kind that is watched is synced",
	}
	within := metav1.Condition{
		Type: fleetv1alpha1.ConditionWithinLimits, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonWithinLimits,
		Message: "No answer of the cluster was refused",
	}
	cases := map[string]struct {
		reason  string
		cluster connection.Cluster
		refused map[string]string
		want    []metav1.Condition
	}{
		"Connected": {
			reason: "A connected, healthy cluster that serves everything has only good news.",
			cluster: connection.Cluster{
				State: connection.StateConnected, Reason: "Connected", Message: "The connection works",
				ControlPlaneHealthy: metav1.ConditionTrue,
			},
			want: []metav1.Condition{
				{Type: "ControlPlaneHealthy", Status: "True", Reason: fleetv1alpha1.ReasonHealthy, Message: "The API server is ready"},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected", Message: "The connection works"},
				allServed,
				synced,
				within,
			},
		},
		"ConnectedUnhealthy": {
			reason: "An API server that answers and is not ready is connected and not healthy.",
			cluster: connection.Cluster{
				State: connection.StateConnected, Reason: "Connected", ControlPlaneHealthy: metav1.ConditionFalse,
			},
			want: []metav1.Condition{
				{
					Type: "ControlPlaneHealthy", Status: "False", Reason: fleetv1alpha1.ReasonUnhealthy,
					Message: "The API server responds, but is not ready",
				},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				synced,
				within,
			},
		},
		"ConnectedNotProbed": {
			reason:  "Health that was not probed is Unknown, not False.",
			cluster: connection.Cluster{State: connection.StateConnected},
			want: []metav1.Condition{
				{
					Type: "ControlPlaneHealthy", Status: "Unknown", Reason: fleetv1alpha1.ReasonNotProbed,
					Message: "The API server has not been probed yet",
				},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				synced,
				within,
			},
		},
		"DefinitionsRefused": {
			reason: "The message names the first definitions that the cluster did not take, in a stable order, each with its reason, and counts the rest.",
			cluster: connection.Cluster{
				State: connection.StateConnected, ControlPlaneHealthy: metav1.ConditionTrue,
			},
			refused: map[string]string{
				"g.x": "DefinitionInvalid", "f.x": "DefinitionInvalid", "e.x": "DefinitionInvalid", "d.x": "DefinitionInvalid",
				"c.x": "DefinitionInvalid", "b.x": "DefinitionForbidden", "a.x": "ForeignDefinition",
			},
			want: []metav1.Condition{
				{Type: "ControlPlaneHealthy", Status: "True", Reason: fleetv1alpha1.ReasonHealthy, Message: "The API server is ready"},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected"},
				{
					Type: fleetv1alpha1.ConditionKindsServed, Status: "False", Reason: fleetv1alpha1.ReasonDefinitionsRefused,
					Message: "Definitions refused: a.x (ForeignDefinition), b.x (DefinitionForbidden), c.x (DefinitionInvalid), " +
						"d.x (DefinitionInvalid), e.x (DefinitionInvalid) and 2 more",
				},
				synced,
				within,
			},
		},
		"Degraded": {
			reason: "While probes fail it is not known whether the cluster is lost, and the rest is not known either.",
			cluster: connection.Cluster{
				State: connection.StateDegraded, Reason: "DialError", Message: "The API server does not answer",
				ControlPlaneHealthy: metav1.ConditionTrue,
			},
			want: []metav1.Condition{
				unknown("ControlPlaneHealthy"),
				{
					Type: fleetv1alpha1.ConditionConnected, Status: "Unknown", Reason: "DialError",
					Message: "The API server does not answer",
				},
				unknown(fleetv1alpha1.ConditionKindsServed),
				unknown(fleetv1alpha1.ConditionKindsSynced), unknown(fleetv1alpha1.ConditionWithinLimits),
			},
		},
		"Refused": {
			reason: "A refused cluster is published with the reason of its refusal.",
			cluster: connection.Cluster{
				State: connection.StateBackoff, Reason: fleetv1alpha1.ReasonDuplicateCluster,
				Message: "The same cluster is enrolled as capi/a/w1",
			},
			want: []metav1.Condition{
				unknown("ControlPlaneHealthy"),
				{
					Type: fleetv1alpha1.ConditionConnected, Status: "False", Reason: fleetv1alpha1.ReasonDuplicateCluster,
					Message: "The same cluster is enrolled as capi/a/w1",
				},
				unknown(fleetv1alpha1.ConditionKindsServed),
				unknown(fleetv1alpha1.ConditionKindsSynced), unknown(fleetv1alpha1.ConditionWithinLimits),
			},
		},
		"AnswerRefused": {
			reason: "An answer of the cluster that is refused is reported.",
			cluster: connection.Cluster{
				State: connection.StateConnected, Reason: "Connected", ControlPlaneHealthy: metav1.ConditionTrue,
				Refused: connection.Refusal{Reason: fleetv1alpha1.ReasonAnswerRefused, Message: "An answer was refused: it is too large"},
			},
			want: []metav1.Condition{
				{Type: "ControlPlaneHealthy", Status: "True", Reason: fleetv1alpha1.ReasonHealthy, Message: "The API server is ready"},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				synced,
				{Type: fleetv1alpha1.ConditionWithinLimits, Status: "False", Reason: "AnswerRefused", Message: "An answer was refused: it is too large"},
			},
		},
		"NotSynced": {
			reason: "Kinds that are not known are named, with the one thing that is wrong with them as the reason.",
			cluster: connection.Cluster{
				State: connection.StateConnected, ControlPlaneHealthy: metav1.ConditionTrue,
				Unsynced: []kindwatch.Unsynced{
					{Kind: "namespaces", Cause: kindwatch.CauseListTruncated}, {Kind: "secrets", Cause: kindwatch.CauseListTruncated},
				},
			},
			want: []metav1.Condition{
				{Type: "ControlPlaneHealthy", Status: "True", Reason: fleetv1alpha1.ReasonHealthy, Message: "The API server is ready"},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				{
					Type: fleetv1alpha1.ConditionKindsSynced, Status: "False", Reason: "ListTruncated",
					Message: "Not synced: namespaces (ListTruncated), secrets (ListTruncated)",
				},
				within,
			},
		},
		"NotSyncedForSeveralReasons": {
			reason: "Several things that are wrong are in the message, and the reason does not choose one of them.",
			cluster: connection.Cluster{
				State: connection.StateConnected, ControlPlaneHealthy: metav1.ConditionTrue,
				Unsynced: []kindwatch.Unsynced{
					{Kind: "namespaces", Cause: kindwatch.CauseWatchFailing}, {Kind: "secrets", Cause: kindwatch.CauseListUnfinished},
				},
			},
			want: []metav1.Condition{
				{Type: "ControlPlaneHealthy", Status: "True", Reason: fleetv1alpha1.ReasonHealthy, Message: "The API server is ready"},
				{Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				{
					Type: fleetv1alpha1.ConditionKindsSynced, Status: "False", Reason: fleetv1alpha1.ReasonKindsNotSynced,
					Message: "Not synced: namespaces (WatchFailing), secrets (ListUnfinished)",
				},
				within,
			},
		},
		"NoReason": {
			reason:  "The API server requires a reason, so the state stands in for one.",
			cluster: connection.Cluster{State: connection.StatePending},
			want: []metav1.Condition{
				unknown("ControlPlaneHealthy"),
				{Type: fleetv1alpha1.ConditionConnected, Status: "False", Reason: "Pending"},
				unknown(fleetv1alpha1.ConditionKindsServed),
				unknown(fleetv1alpha1.ConditionKindsSynced), unknown(fleetv1alpha1.ConditionWithinLimits),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conditions(tc.cluster, tc.refused)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestConditionsOfEveryState(t *testing.T) {
	for _, state := range []connection.State{
		connection.StatePending, connection.StateConnecting, connection.StateConnected, connection.StateDegraded,
		connection.StateBackoff, connection.StateDraining, connection.StateRemoved,
	} {
		for _, c := range conditions(connection.Cluster{State: state}, nil) {
			if c.Reason == "" || c.Status == "" {
				t.Errorf("State %q: condition %q has no reason or no status, which the API server refuses", state, c.Type)
			}
			if c.Status == metav1.ConditionTrue && state != connection.StateConnected {
				t.Errorf("State %q: condition %q is True although nothing can be known", state, c.Type)
			}
		}
	}
}
