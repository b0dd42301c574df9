// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestConditions(t *testing.T) {
	const noConnection = "There is no working connection"
	unknown := func(conditionType string) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionUnknown, Reason: ReasonNotConnected, Message: noConnection,
		}
	}
	allServed := metav1.Condition{
		Type: ConditionKindsServed, Status: metav1.ConditionTrue, Reason: ReasonAllServed,
		Message: "Every kind that is needed is served",
	}
	synced := metav1.Condition{
		Type: ConditionKindsSynced, Status: metav1.ConditionTrue, Reason: ReasonAllSynced, Message: "Every kind that is watched is synced",
	}
	within := metav1.Condition{
		Type: ConditionWithinLimits, Status: metav1.ConditionTrue, Reason: ReasonWithinLimits,
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
				{Type: "ControlPlaneHealthy", Status: "True", Reason: ReasonHealthy, Message: "The API server is ready"},
				{Type: ConditionConnected, Status: "True", Reason: "Connected", Message: "The connection works"},
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
					Type: "ControlPlaneHealthy", Status: "False", Reason: ReasonUnhealthy,
					Message: "The API server responds, but is not ready",
				},
				{Type: ConditionConnected, Status: "True", Reason: "Connected"},
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
					Type: "ControlPlaneHealthy", Status: "Unknown", Reason: ReasonNotProbed,
					Message: "The API server has not been probed yet",
				},
				{Type: ConditionConnected, Status: "True", Reason: "Connected"},
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
				{Type: "ControlPlaneHealthy", Status: "True", Reason: ReasonHealthy, Message: "The API server is ready"},
				{Type: ConditionConnected, Status: "True", Reason: "Connected"},
				{
					Type: ConditionKindsServed, Status: "False", Reason: ReasonDefinitionsRefused,
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
					Type: ConditionConnected, Status: "Unknown", Reason: "DialError",
					Message: "The API server does not answer",
				},
				unknown(ConditionKindsServed),
				unknown(ConditionKindsSynced), unknown(ConditionWithinLimits),
			},
		},
		"Refused": {
			reason: "A refused cluster is published with the reason of its refusal.",
			cluster: connection.Cluster{
				State: connection.StateBackoff, Reason: connection.ReasonDuplicateCluster,
				Message: "The same cluster is enrolled as capi/a/w1",
			},
			want: []metav1.Condition{
				unknown("ControlPlaneHealthy"),
				{
					Type: ConditionConnected, Status: "False", Reason: connection.ReasonDuplicateCluster,
					Message: "The same cluster is enrolled as capi/a/w1",
				},
				unknown(ConditionKindsServed),
				unknown(ConditionKindsSynced), unknown(ConditionWithinLimits),
			},
		},
		"AnswerRefused": {
			reason: "An answer of the cluster that is refused is reported.",
			cluster: connection.Cluster{
				State: connection.StateConnected, Reason: "Connected", ControlPlaneHealthy: metav1.ConditionTrue,
				Refused: connection.Refusal{Reason: connection.ReasonAnswerRefused, Message: "An answer was refused: it is too large"},
			},
			want: []metav1.Condition{
				{Type: "ControlPlaneHealthy", Status: "True", Reason: ReasonHealthy, Message: "The API server is ready"},
				{Type: ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				synced,
				{Type: ConditionWithinLimits, Status: "False", Reason: "AnswerRefused", Message: "An answer was refused: it is too large"},
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
				{Type: "ControlPlaneHealthy", Status: "True", Reason: ReasonHealthy, Message: "The API server is ready"},
				{Type: ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				{
					Type: ConditionKindsSynced, Status: "False", Reason: "ListTruncated",
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
				{Type: "ControlPlaneHealthy", Status: "True", Reason: ReasonHealthy, Message: "The API server is ready"},
				{Type: ConditionConnected, Status: "True", Reason: "Connected"},
				allServed,
				{
					Type: ConditionKindsSynced, Status: "False", Reason: ReasonKindsNotSynced,
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
				{Type: ConditionConnected, Status: "False", Reason: "Pending"},
				unknown(ConditionKindsServed),
				unknown(ConditionKindsSynced), unknown(ConditionWithinLimits),
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

func TestBounded(t *testing.T) {
	cases := map[string]struct {
		reason string
		text   string
		want   string
	}{
		"Short":       {reason: "What fits stays.", text: "héllo", want: "héllo"},
		"Long":        {reason: "What does not fit is cut, by characters and not in the middle of one.", text: "ééééééééé", want: "ééééééé…"},
		"InvalidUTF8": {reason: "The API server refuses what is not UTF-8.", text: "a\xffb", want: "a?b"},
		"Empty":       {reason: "Nothing stays nothing.", text: "", want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := bounded(tc.text, 8); got != tc.want {
				t.Errorf("%s\nbounded(%q): want %q, got %q", tc.reason, tc.text, tc.want, got)
			}
		})
	}
	if got := len([]rune(bounded(strings.Repeat("a", 1<<20), maxMessageLength))); got != maxMessageLength {
		t.Errorf("A megabyte from a cluster must not reach the hub: want %d characters, got %d", maxMessageLength, got)
	}
}
