// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// conditionsFrom are conditions written as "Type=Status/Reason".
func conditionsFrom(texts ...string) []any {
	var list []any
	for _, text := range texts {
		name, state, _ := strings.Cut(text, "=")
		status, reason, _ := strings.Cut(state, "/")
		list = append(list, map[string]any{"type": name, "status": status, "reason": reason})
	}
	return list
}

// An object without a rule for its kind must not be Healthy by mistake, and need not be Unknown where its status says
// enough.
func TestSigns(t *testing.T) {
	cases := map[string]struct {
		reason string
		status map[string]any
		want   appsv1alpha1.Health
	}{
		"PartFailed": {
			reason: "That it has begun says less than that a part has failed.",
			status: map[string]any{"conditions": conditionsFrom("Initialized=True", "DatabaseReady=False/CreateFailed")},
			want:   appsv1alpha1.HealthDegraded,
		},
		"PartNotAvailable": {
			reason: "A part is not there yet.",
			status: map[string]any{"conditions": conditionsFrom("Created=True", "BackupAvailable=False")}, want: appsv1alpha1.HealthProgressing,
		},
		"PartUnknown": {
			reason: "It is unknown whether a part is ready.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "StorageReady=Unknown")}, want: appsv1alpha1.HealthProgressing,
		},
		"PartNotHealthy": {
			reason: "False of a verdict is said after an attempt.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "EtcdHealthy=False")}, want: appsv1alpha1.HealthDegraded,
		},
		"PhaseAndPart": {
			reason: "A phase sums up less well than the worst of its parts.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("WorkersReady=False")}, want: appsv1alpha1.HealthProgressing,
		},
		"PartsOnly": {
			reason: "That a part is ready does not make the whole Healthy.",
			status: map[string]any{"conditions": conditionsFrom("WorkersReady=True")}, want: appsv1alpha1.HealthUnknown,
		},
		"ReadySumsUp": {
			reason: "Ready knows which parts matter.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True", "WorkersReady=False/CreateFailed")}, want: appsv1alpha1.HealthHealthy,
		},
		"NotReady": {
			reason: "The ending does not mean what it means elsewhere.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("WorkerNotReady=False")}, want: appsv1alpha1.HealthHealthy,
		},
		"UnlistedFailed": {
			reason: "The reason tells what the type does not.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("Backup=False/UploadFailed")}, want: appsv1alpha1.HealthDegraded,
		},
		"UnlistedFalse": {
			reason: "False of a type that is not known can be good news, and need not.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("Drained=False/InUse")}, want: appsv1alpha1.HealthUnknown,
		},
		"NoFailure": {
			reason: "The reason tells that nothing has failed.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("NoErrors=True/NoErrors", "UploadError=False/NeverFailed")},
			want:   appsv1alpha1.HealthHealthy,
		},
		"UnknownPhase": {
			reason: "An unknown phase can mean anything.",
			status: map[string]any{"phase": "Exploded", "conditions": conditionsFrom("Created=True")}, want: appsv1alpha1.HealthUnknown,
		},
		"UnknownPhaseAvailable": {
			reason: "As above: Available is not everything.",
			status: map[string]any{"phase": "Exploded", "conditions": conditionsFrom("Available=True")}, want: appsv1alpha1.HealthUnknown,
		},
		"UnknownPhaseReady": {
			reason: "Ready sums up.",
			status: map[string]any{"phase": "Dancing", "conditions": conditionsFrom("Ready=True")}, want: appsv1alpha1.HealthHealthy,
		},
		"Begun": {
			reason: "What has been created is not ready yet.",
			status: map[string]any{"conditions": conditionsFrom("Created=True", "Scheduled=True")}, want: appsv1alpha1.HealthProgressing,
		},
		"BegunAndRunning": {
			reason: "Another sign says more.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("Initialized=True")}, want: appsv1alpha1.HealthHealthy,
		},
		"NotBegun": {
			reason: "It has not been scheduled.",
			status: map[string]any{"phase": "Running", "conditions": conditionsFrom("Scheduled=False")}, want: appsv1alpha1.HealthProgressing,
		},
		"GenerationAsText": {
			reason: "There are controllers that write numbers as text.",
			status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": "1"}}},
			want:   appsv1alpha1.HealthProgressing,
		},
		"LastGeneration": {
			reason: "Not all call it observedGeneration.",
			status: map[string]any{"lastGeneration": int64(1), "conditions": conditionsFrom("Ready=True")}, want: appsv1alpha1.HealthProgressing,
		},
		"LatestGeneration": {
			reason: "As above, and it is the latest.",
			status: map[string]any{"lastGeneration": int64(2), "conditions": conditionsFrom("Ready=True")}, want: appsv1alpha1.HealthHealthy,
		},
		"NoReadyReplicas": {
			reason: "A count of zero is left out of a status.",
			status: map[string]any{"phase": "Running", "replicas": int64(3)}, want: appsv1alpha1.HealthProgressing,
		},
		"AvailableReplicas": {
			reason: "Some count what is available.",
			status: map[string]any{"replicas": int64(3), "availableReplicas": int64(2)}, want: appsv1alpha1.HealthProgressing,
		},
		"AllAvailable": {
			reason: "As above, and all are.",
			status: map[string]any{"replicas": int64(3), "availableReplicas": int64(3)}, want: appsv1alpha1.HealthHealthy,
		},
		"ReadyWithoutCount": {
			reason: "Ready sums up, and the kind may count nothing.",
			status: map[string]any{"replicas": int64(3), "conditions": conditionsFrom("Ready=True")}, want: appsv1alpha1.HealthHealthy,
		},
		"FailureBesideReady": {
			reason: "What has failed outweighs what sums up.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True", "UpgradeFailed=True/Conflict")}, want: appsv1alpha1.HealthDegraded,
		},
		"FailureThatIsOver": {
			reason: "It has not failed.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "UpgradeFailed=False", "NoErrors=True")}, want: appsv1alpha1.HealthHealthy,
		},
		"FailureNotKnown": {
			reason: "It is not known whether it has failed.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "Degraded=Unknown")}, want: appsv1alpha1.HealthProgressing,
		},
		"Negated": {
			reason: "It lacks what it needs.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "NotSynced=True")}, want: appsv1alpha1.HealthDegraded,
		},
		"NegatedFailure": {
			reason: "It has what it should not have.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "NoErrors=False")}, want: appsv1alpha1.HealthDegraded,
		},
		"DomainAndCase": {
			reason: "Neither a domain nor case and separators change what a type means.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "db.example.org/Upgrade-failed=True")}, want: appsv1alpha1.HealthDegraded,
		},
		"DoubtBesideReady": {
			reason: "Ready sums up.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True", "Drained=False/InUse")}, want: appsv1alpha1.HealthHealthy,
		},
		"DoubtWithFailure": {
			reason: "The reason says what the type does not.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "Balanced=False/rebalance_failed")}, want: appsv1alpha1.HealthDegraded,
		},
		"WorkInPart": {
			reason: "A part is being changed.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True", "VersionUpdating=True")}, want: appsv1alpha1.HealthProgressing,
		},
		"WorkEndedWithoutSuccess": {
			reason: "The rollout is past its deadline.",
			status: map[string]any{"conditions": conditionsFrom("Available=True", "Progressing=False/ProgressDeadlineExceeded")}, want: appsv1alpha1.HealthDegraded,
		},
		"VerdictPending": {
			reason: "It is not a failure to be on the way.",
			status: map[string]any{"conditions": conditionsFrom("ChildrenHealthy=False/Progressing")}, want: appsv1alpha1.HealthProgressing,
		},
		"MessageOfFailure": {
			reason: "Without a reason the message says it.",
			status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "Failed to create it"}}}, want: appsv1alpha1.HealthDegraded,
		},
		"SeverityError": {
			reason: "Cluster API says by the severity what is a failure.",
			status: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "severity": "Error", "reason": "Gone"}}}, want: appsv1alpha1.HealthDegraded,
		},
		"CompleteBecauseFailed": {
			reason: "It has ended, without success.",
			status: map[string]any{"conditions": conditionsFrom("Complete=True/JobFailed")}, want: appsv1alpha1.HealthDegraded,
		},
		"PausedForAReason": {
			reason: "What Crossplane says of paused objects, of any group.",
			status: map[string]any{"conditions": conditionsFrom("Synced=False/ReconcilePaused", "Ready=True")}, want: appsv1alpha1.HealthSuspended,
		},
		"NotPaused": {
			reason: "The reason tells the opposite.",
			status: map[string]any{"conditions": conditionsFrom("Synced=False/NotPaused")}, want: appsv1alpha1.HealthDegraded,
		},
		"AsyncOperation": {
			reason: "As above: the last change has failed.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True", "LastAsyncOperation=False/AsyncUpdateFailure")}, want: appsv1alpha1.HealthDegraded,
		},
		"OnlySynced": {
			reason: "As above: Ready follows.",
			status: map[string]any{"conditions": conditionsFrom("Synced=True/ReconcileSuccess")}, want: appsv1alpha1.HealthProgressing,
		},
		"ReferenceWaits": {
			reason: "Its source does not exist yet.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True", "ReferencesResolved=False/SourceNotFound")}, want: appsv1alpha1.HealthProgressing,
		},
		"AnsibleSucceeded": {
			reason: "The playbook has ended.",
			status: map[string]any{"conditions": conditionsFrom("Running=True/Successful", "Successful=True")}, want: appsv1alpha1.HealthHealthy,
		},
		"SecondWordFailed": {
			reason: "Each word counts, and the worst.",
			status: map[string]any{"phase": "Running", "healthStatus": "red"}, want: appsv1alpha1.HealthDegraded,
		},
		"SecondWordUnknown": {
			reason: "An unknown word beside a known one can mean anything.",
			status: map[string]any{"phase": "Running", "state": "Exploded"}, want: appsv1alpha1.HealthUnknown,
		},
		"CompoundOfWork": {
			reason: "A word that is known is in it.",
			status: map[string]any{"phase": "ApplyingChanges", "conditions": conditionsFrom("Available=True")}, want: appsv1alpha1.HealthProgressing,
		},
		"CompoundOfSuccess": {
			reason: "One good word does not make a word that is not known good.",
			status: map[string]any{"phase": "HalfReady"}, want: appsv1alpha1.HealthUnknown,
		},
		"UpdatedReplicas": {
			reason: "Those of the old revision do not count.",
			status: map[string]any{"readyReplicas": int64(3), "updatedReplicas": int64(1)}, want: appsv1alpha1.HealthProgressing,
		},
		"ReadyNodes": {
			reason: "Other things than replicas are counted as well.",
			status: map[string]any{"phase": "Running", "readyNodes": int64(1), "expectedNodes": int64(2)}, want: appsv1alpha1.HealthProgressing,
		},
		"ReadyOfSize": {
			reason: "As above.",
			status: map[string]any{"state": "ready", "ready": int64(1), "size": int64(2)}, want: appsv1alpha1.HealthProgressing,
		},
		"Fraction": {
			reason: "It is printed.",
			status: map[string]any{"phase": "Running", "readyReplicas": "1/3"}, want: appsv1alpha1.HealthProgressing,
		},
		"WholeFraction": {
			reason: "As above, and all are.",
			status: map[string]any{"ready": "3/3"}, want: appsv1alpha1.HealthHealthy,
		},
		"FailedPart": {
			reason: "A part has failed, and Ready has not followed.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True"), "services": []any{map[string]any{"state": "failed"}}}, want: appsv1alpha1.HealthDegraded,
		},
		"FalsePart": {
			reason: "As above.",
			status: map[string]any{"phase": "Running", "services": []any{map[string]any{"healthy": false}}}, want: appsv1alpha1.HealthDegraded,
		},
		"PartOfThePast": {
			reason: "What has been is over.",
			status: map[string]any{"phase": "Running", "history": []any{map[string]any{"state": "failed"}}, "phaseTransitions": []any{map[string]any{"phase": "Pending"}}, "lastBackup": map[string]any{"state": "failed"}}, want: appsv1alpha1.HealthHealthy,
		},
		"ErrorInPart": {
			reason: "The part says why.",
			status: map[string]any{"phase": "Running", "reconciliation": map[string]any{"error": "no such image"}}, want: appsv1alpha1.HealthDegraded,
		},
		"ConditionInPart": {
			reason: "Listeners and the like have conditions.",
			status: map[string]any{"conditions": conditionsFrom("Programmed=True"), "listeners": []any{map[string]any{"conditions": conditionsFrom("Accepted=False")}}}, want: appsv1alpha1.HealthDegraded,
		},
		"NotCurrent": {
			reason: "It has not the version that it should have.",
			status: map[string]any{"phase": "Running", "currentVersion": "1.0", "desiredVersion": "1.1"}, want: appsv1alpha1.HealthProgressing,
		},
		"NotActive": {
			reason: "What is proposed is not active.",
			status: map[string]any{"conditions": conditionsFrom("Ready=True"), "active": map[string]any{"dry": map[string]any{"sha": "a"}}, "proposed": map[string]any{"dry": map[string]any{"sha": "b"}}}, want: appsv1alpha1.HealthProgressing,
		},
		"NothingInAParent": {
			reason: "One of its parents says nothing that is understood.",
			status: map[string]any{"ancestors": []any{map[string]any{"conditions": conditionsFrom("Accepted=True")}, map[string]any{"conditions": conditionsFrom("Bar=True")}}}, want: appsv1alpha1.HealthUnknown,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := New().Assess(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "db.example.org/v1", "kind": "Database", "metadata": map[string]any{"generation": int64(2)},
				"spec": map[string]any{"replicas": int64(3)}, "status": tc.status,
			}}, true)
			checkValid(t, got)
			if got.Health != tc.want {
				t.Errorf("%s: want %s, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

// A helper that searches a list is charged for it, so that a loop of such helpers ends.
func TestHelpersAreBounded(t *testing.T) {
	many := make([]any, 5000)
	parents := make([]any, 0, len(many))
	for i := range many {
		many[i] = map[string]any{"type": "Other", "status": "True"}
		parents = append(parents, map[string]any{"conditions": []any{many[i]}})
	}
	for expression, status := range map[string]map[string]any{
		"items('status.conditions').all(c, !isTrue('Ready'))":                  {"conditions": many},
		"items('status.conditions').all(c, !isFalse('Ready'))":                 {"conditions": many},
		"items('status.conditions').all(c, !isUnmet('Ready'))":                 {"conditions": many},
		"items('status.conditions').all(c, condition('Ready').reason == '')":   {"conditions": many},
		"items('status.conditions').all(c, observes(1))":                       {"conditions": many},
		"items('status.conditions').all(c, observed())":                        {"conditions": many},
		"items('status.parents').all(p, observed())":                           {"parents": parents},
		"items('status.ancestors').all(p, observed())":                         {"ancestors": parents},
		"items('status.conditions').all(c, phase() != '')":                     {"conditions": many, "phase": strings.Repeat("x", 1<<20)},
		"items('status.conditions').all(c, !saysFailed(text('status.state')))": {"conditions": many, "state": strings.Repeat("x", 1<<20)},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "db.example.org/v1", "kind": "Database", "metadata": map[string]any{"generation": int64(1)}, "status": status,
		}}
		rule := Compile("db", fleetv1alpha1.HealthRuleSpec{Group: "db.example.org", Kind: "Database", Healthy: expression})
		if got := New(rule).Assess(obj, true); got.Reason != appsv1alpha1.ReasonRuleFailed || !strings.Contains(got.Message, "exceeds the cost limit") {
			t.Errorf("%s: want the rule to fail, got %+v", expression, got)
		}
	}
}

// With staleStatus Progressing, each condition that makes an object healthy has to be about its latest generation.
func TestLatestConditions(t *testing.T) {
	conditions := func(accepted, programmed any) []any {
		return []any{
			map[string]any{"type": "Accepted", "status": "True", "observedGeneration": accepted},
			map[string]any{"type": "Programmed", "status": "True", "observedGeneration": programmed},
		}
	}
	cases := map[string]struct {
		reason     string
		stale      fleetv1alpha1.StaleStatus
		conditions []any
		want       appsv1alpha1.Health
	}{
		"Latest":       {"All are about the latest.", fleetv1alpha1.StaleStatusProgressing, conditions(int64(2), int64(2)), appsv1alpha1.HealthHealthy},
		"OneOlder":     {"The one that decides is not.", fleetv1alpha1.StaleStatusProgressing, conditions(int64(2), int64(1)), appsv1alpha1.HealthProgressing},
		"OneOlderText": {"A number can be written as text.", fleetv1alpha1.StaleStatusProgressing, conditions("2", "1"), appsv1alpha1.HealthProgressing},
		"NotSaid":      {"Most conditions do not say what they are about.", fleetv1alpha1.StaleStatusProgressing, conditions(int64(0), nil), appsv1alpha1.HealthHealthy},
		"Judged":       {"The author of the rule wants the old status to be judged.", fleetv1alpha1.StaleStatusJudged, conditions(int64(2), int64(1)), appsv1alpha1.HealthHealthy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rule := Compile("db", fleetv1alpha1.HealthRuleSpec{
				Group: "db.example.org", Kind: "Database", StaleStatus: tc.stale, Healthy: "isTrue('Accepted') && isTrue('Programmed')",
			})
			got := New(rule).Assess(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "db.example.org/v1", "kind": "Database", "metadata": map[string]any{"generation": int64(2)},
				"status": map[string]any{"conditions": tc.conditions},
			}}, true)
			if got.Health != tc.want {
				t.Errorf("%s: want %s, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestSameParent(t *testing.T) {
	cases := map[string]struct {
		reason       string
		status, spec fields
		want         bool
	}{
		"Same":           {"It is.", fields{"name": "a", "port": int64(80)}, fields{"name": "a", "port": int64(80)}, true},
		"OtherName":      {"It is another one.", fields{"name": "a"}, fields{"name": "b"}, false},
		"OtherPort":      {"As above.", fields{"name": "a", "port": int64(80)}, fields{"name": "a", "port": int64(443)}, false},
		"NoPort":         {"The status is about another part of the parent.", fields{"name": "a"}, fields{"name": "a", "port": int64(443)}, false},
		"AnySection":     {"The spec asks for all sections.", fields{"name": "a", "sectionName": "http"}, fields{"name": "a"}, true},
		"Defaults":       {"A controller may leave out what is the default.", fields{"name": "a"}, fields{"name": "a", "namespace": "x", "kind": "Gateway"}, true},
		"OtherNamespace": {"It is another one.", fields{"name": "a", "namespace": "y"}, fields{"name": "a", "namespace": "x"}, false},
		"NotInStatus":    {"The status names no parent.", nil, fields{"name": "a"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := sameParent(tc.status, tc.spec); got != tc.want {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
