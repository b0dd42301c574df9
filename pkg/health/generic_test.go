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

// The library adds to what is known about the kinds of Kubernetes, and does not change it.
func TestLibraryAgreesAboutKubernetes(t *testing.T) {
	library, err := NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	a := library.New()
	for name, f := range fixtures(t) {
		if strings.HasPrefix(name, "customresource/") {
			continue
		}
		if got := a.Assess(f.object, f.statusExpected()); got.Health != f.Want.Health {
			t.Errorf("%s: want %s, got %+v", name, f.Want.Health, got)
		}
	}
}

func TestSaysFailed(t *testing.T) {
	cases := map[string]bool{
		"": false, "Failed": true, "ReconcileFailed": true, "CREATE_FAILED": true, "InstallFailedOnce": true, "BackoffLimitExceeded": true,
		"ErrorFetchingSecret": true, "InvalidSpec": true, "HTTPError": true, "request timeout": true,
		"Failover": false, "WaitingForFailover": false, "Progressing": false, "Terror": false, "Unfailing": false, "Provisioning": false,
	}
	for reason, want := range cases {
		if got := saysFailed(reason); got != want {
			t.Errorf("%q: want %v, got %v", reason, want, got)
		}
	}
}

func TestWordHealth(t *testing.T) {
	cases := map[string]appsv1alpha1.Health{
		"Running": appsv1alpha1.HealthHealthy, "RUNNING": appsv1alpha1.HealthHealthy, "in-sync": appsv1alpha1.HealthHealthy,
		"In Progress": appsv1alpha1.HealthProgressing, "partially_failed": appsv1alpha1.HealthDegraded, "Paused": appsv1alpha1.HealthSuspended,
		"Dancing": "", "": "", strings.Repeat("running", 10): "",
	}
	for word, want := range cases {
		if got, known := wordHealth(word); got != want || known != (want != "") {
			t.Errorf("%q: want %q, got %q (%v)", word, want, got, known)
		}
	}
}

// TestHelpers checks that the functions of expressions fail on nothing that an object can contain.
func TestHelpers(t *testing.T) {
	object := map[string]any{
		"apiVersion": "db.example.org/v1", "kind": "Database", "metadata": map[string]any{"generation": int64(2)},
		"spec": map[string]any{"paused": "True", "size": "3"},
		"status": map[string]any{
			"phase": "Odd", "observedGeneration": "1", "nodes": []any{map[string]any{"conditions": []any{map[string]any{"type": "Up", "status": false}}}},
			"conditions": []any{"x", nil, map[string]any{"type": "Ready", "status": "true", "reason": "Fine"}, map[string]any{"type": int64(1)}},
		},
	}
	for expression, want := range map[string]bool{
		"isTrue('Ready')": true, "object.isTrue('Ready')": true, "isTrue('Absent')": false, "isFalse('Ready')": false,
		"condition('Ready').reason == 'Fine'": true, "condition('Absent').reason == ''": true, "phase() == 'Odd'": true, "observed()": false,
		"text('status.phase') == 'Odd'": true, "text('status.phase.x') == ''": true, "text('status.nodes') == ''": true,
		"flag('spec.paused')": true, "flag('spec.absent')": false, "number('spec.size') == 3": true, "number('spec.absent', 7) == 7": true,
		"number('status.phase') == 0": true, "items('status.nodes').all(n, n.isFalse('Up'))": true, "items('status.phase').size() == 0": true,
		"saysFailed('CreateFailed')": true, "isUnmet('Ready')": false, "isUnmet('Absent')": false, "items('status.nodes').all(n, n.isUnmet('Up'))": true,
		"items('status.nodes').all(n, n.isUnmet('Down', 'Up'))": true, "isUnmet('Ready', 'Absent')": false,
		"observes(2)": true,
	} {
		rule := Compile("db", fleetv1alpha1.HealthRuleSpec{Groups: []string{"db.example.org"}, Kinds: []string{"Database"}, Healthy: expression})
		if rule.Err() != nil {
			t.Errorf("%s: %v", expression, rule.Err())
			continue
		}
		got := New(rule).Assess(&unstructured.Unstructured{Object: object}, true)
		if (got.Health == appsv1alpha1.HealthHealthy) != want || got.Reason == appsv1alpha1.ReasonRuleFailed {
			t.Errorf("%s: want %v, got %+v", expression, want, got)
		}
	}
}

// Wildcards are not for the kinds that Masthead knows itself: no Secret is read because of one.
func TestWildcardsLeaveKubernetesAlone(t *testing.T) {
	a := New(Compile("all", fleetv1alpha1.HealthRuleSpec{Groups: []string{"*"}, Kinds: []string{"*"}, Degraded: "true"}))
	for kind, want := range map[string]appsv1alpha1.Health{"Secret": appsv1alpha1.HealthHealthy, "Database": appsv1alpha1.HealthDegraded} {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		if got := a.Assess(obj, false); got.Health != want {
			t.Errorf("%s: want %s, got %+v", kind, want, got)
		}
		if needs := a.NeedsObject(obj.GroupVersionKind().GroupKind()); needs != (kind != "Secret") {
			t.Errorf("%s is read whole: %v", kind, needs)
		}
	}
}

// The author of a rule chooses what it says about an object for which no expression is true.
func TestOtherwise(t *testing.T) {
	ready := map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	cases := map[string]struct {
		reason    string
		otherwise fleetv1alpha1.Otherwise
		healthy   string
		status    map[string]any
		want      appsv1alpha1.Health
	}{
		"AbsentWithHealthy":    {"A rule that says what is healthy leaves the rest on its way there.", "", "false", ready, appsv1alpha1.HealthProgressing},
		"AbsentWithoutHealthy": {"The rule has nothing to say.", "", "", ready, appsv1alpha1.HealthHealthy},
		"Progressing":          {"As its author wants it.", fleetv1alpha1.OtherwiseProgressing, "", ready, appsv1alpha1.HealthProgressing},
		"Unknown":              {"As its author wants it.", fleetv1alpha1.OtherwiseUnknown, "false", ready, appsv1alpha1.HealthUnknown},
		"UnknownWithoutStatus": {"No controller has reported its status yet.", fleetv1alpha1.OtherwiseUnknown, "false", nil, appsv1alpha1.HealthUnknown},
		"Next":                 {"The conditions are judged.", fleetv1alpha1.OtherwiseNext, "false", ready, appsv1alpha1.HealthHealthy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{"apiVersion": "db.example.org/v1", "kind": "Database"}
			if tc.status != nil {
				object["status"] = tc.status
			}
			a := New(Compile("db", fleetv1alpha1.HealthRuleSpec{
				Group: "db.example.org", Kind: "Database", Degraded: "false", Healthy: tc.healthy, Otherwise: tc.otherwise,
			}))
			if got := a.Assess(&unstructured.Unstructured{Object: object}, true); got.Health != tc.want {
				t.Errorf("%s: want %s, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

// A chain of rules ends with the first that decides.
func TestChainOfRules(t *testing.T) {
	rule := func(name string, change func(*fleetv1alpha1.HealthRuleSpec)) *Rule {
		spec := fleetv1alpha1.HealthRuleSpec{Groups: []string{"a.db.example.org"}, Kinds: []string{"Database"}, Message: "'" + name + "'"}
		change(&spec)
		return Compile(name, spec)
	}
	rules := []*Rule{
		rule("everything", func(s *fleetv1alpha1.HealthRuleSpec) {
			s.Groups, s.Kinds, s.Degraded = []string{"*"}, []string{"*"}, "true"
		}),
		rule("domain", func(s *fleetv1alpha1.HealthRuleSpec) {
			s.Groups, s.Degraded = []string{"*.example.org"}, "phase() != 'e'"
		}),
		rule("below", func(s *fleetv1alpha1.HealthRuleSpec) {
			s.Groups, s.Degraded = []string{"*.db.example.org"}, "phase() < 'd'"
		}),
		rule("group", func(s *fleetv1alpha1.HealthRuleSpec) { s.Kinds, s.Degraded = []string{"*"}, "phase() < 'c'" }),
		rule("kind", func(s *fleetv1alpha1.HealthRuleSpec) { s.Degraded = "phase() < 'b'" }),
		rule("version", func(s *fleetv1alpha1.HealthRuleSpec) { s.Versions, s.Degraded = []string{"v1"}, "phase() == 'a'" }),
		rule("other", func(s *fleetv1alpha1.HealthRuleSpec) { s.Versions, s.Degraded = []string{"v2"}, "true" }),
	}
	a := New(rules...)
	for phase, want := range map[string]string{"a": "version", "aa": "kind", "b": "group", "c": "below", "d": "domain", "e": "everything"} {
		got := a.Assess(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "a.db.example.org/v1", "kind": "Database", "status": map[string]any{"phase": phase},
		}}, true)
		if got.Message != want {
			t.Errorf("phase %q: want the rule %q, got %+v", phase, want, got)
		}
	}
}

// Conditions that lie deeper are nearer to the cause.
func TestComplaint(t *testing.T) {
	status := fields{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": "A listener is not ready"}},
		"listeners": []any{map[string]any{"conditions": []any{
			map[string]any{"type": "Accepted", "status": "True", "message": "Fine"},
			map[string]any{"type": "ResolvedRefs", "status": "False", "message": "There is no Secret"},
		}}}}
	if got := complaint(status); got != "There is no Secret" {
		t.Errorf("want the deepest condition that complains, got %q", got)
	}
}

func TestPauses(t *testing.T) {
	cases := map[string]struct {
		name, value string
		want        bool
	}{
		"Crossplane": {"crossplane.io/paused", "true", true}, "NotPaused": {"crossplane.io/paused", "false", false},
		"ClusterAPI": {"cluster.x-k8s.io/paused", "", true}, "Strimzi": {"strimzi.io/pause-reconciliation", "true", true},
		"Hibernation": {"example.org/hibernation", "on", true}, "Replicas": {"autoscaling.keda.sh/paused-replicas", "0", false},
		"OwnDomain": {"example.org/reconciliationLoop", "disabled", true}, "Flux": {"kustomize.toolkit.fluxcd.io/reconcile", "disabled", false},
		"NotADomain": {"ample.org/reconcile", "disabled", false}, "Other": {"example.org/owner", "true", false},
	}
	for name, tc := range cases {
		if got := pauses(tc.name, tc.value, "db.example.org/v1"); got != tc.want {
			t.Errorf("%s: want %v, got %v", name, tc.want, got)
		}
	}
}

// A field that is about a state can have a whole sentence, which may be meant for few readers.
func TestSentencesAreNoReasons(t *testing.T) {
	for _, field := range []string{"phase", "dbStatus"} {
		got := newAssessor(nil, nil).Assess(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.org/v1", "kind": "Quux",
			"status": map[string]any{field: "connection of admin with password hunter2 failed"},
		}}, true)
		if got.Health != appsv1alpha1.HealthDegraded || got.Reason != field {
			t.Errorf("Want %s to be the reason why it is Degraded, got %+v.", field, got)
		}
	}
}
