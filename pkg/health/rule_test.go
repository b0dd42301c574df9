// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// database is an object of a kind of which nothing is known.
func database(change func(object map[string]any)) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "db.example.org/v1", "kind": "Database",
		"metadata": map[string]any{"name": "main"},
		"spec":     map[string]any{"size": int64(3)},
		"status":   map[string]any{"phase": "Running", "ready": true, "message": "All is well"},
	}
	if change != nil {
		change(object)
	}
	return &unstructured.Unstructured{Object: object}
}

func inPhase(phase string) *unstructured.Unstructured {
	return database(func(object map[string]any) { object["status"] = map[string]any{"phase": phase} })
}

func TestRule(t *testing.T) {
	byPhase := fleetv1alpha1.HealthRuleSpec{
		Degraded:    "object.status.phase == 'Failed'",
		Suspended:   "object.status.phase == 'Paused'",
		Progressing: "object.status.phase in ['Pending', 'Starting']",
		Healthy:     "object.status.phase == 'Running'",
		Message:     "'The phase is ' + object.status.phase",
	}
	without := func(change func(*fleetv1alpha1.HealthRuleSpec)) fleetv1alpha1.HealthRuleSpec {
		spec := byPhase
		change(&spec)
		return spec
	}
	noStatusAtAll := database(func(object map[string]any) { delete(object, "status") })
	cases := map[string]struct {
		reason           string
		spec             fleetv1alpha1.HealthRuleSpec
		object           *unstructured.Unstructured
		statusUnexpected bool
		want             Result
	}{
		"Degraded": {
			reason: "The expression is true.", spec: byPhase, object: inPhase("Failed"),
			want: degraded(appsv1alpha1.ReasonRuleDegraded, "The phase is Failed"),
		},
		"Suspended": {
			reason: "The expression is true.", spec: byPhase, object: inPhase("Paused"),
			want: suspended(appsv1alpha1.ReasonRuleSuspended, "The phase is Paused"),
		},
		"Progressing": {
			reason: "The expression is true.", spec: byPhase, object: inPhase("Starting"),
			want: progressing(appsv1alpha1.ReasonRuleProgressing, "The phase is Starting"),
		},
		"Healthy": {
			reason: "There is nothing to say about what is well.", spec: byPhase, object: inPhase("Running"), want: healthy(),
		},
		"NotHealthy": {
			reason: "A rule that says what is healthy leaves the rest on its way there.", spec: byPhase, object: inPhase("Odd"),
			want: progressing(appsv1alpha1.ReasonRuleNotHealthy, "The phase is Odd"),
		},
		"Order": {
			reason: "The first that is true decides.",
			spec:   fleetv1alpha1.HealthRuleSpec{Healthy: "true", Suspended: "true", Progressing: "true"},
			object: database(nil), want: suspended(appsv1alpha1.ReasonRuleSuspended, `HealthRule "db": suspended is true`),
		},
		"NothingToSay": {
			reason: "Without the expression healthy, an object that matches no expression is assessed as without the rule.",
			spec:   fleetv1alpha1.HealthRuleSpec{Degraded: "object.status.phase == 'Failed'"},
			object: database(func(object map[string]any) {
				object["status"] = map[string]any{"phase": "Odd", "conditions": []any{
					map[string]any{"type": "Ready", "status": "False", "reason": "Booting", "message": "It boots"},
				}}
			}),
			want: progressing("Booting", "It boots"),
		},
		"NoMessage": {
			reason: "Without a message of its own the rule is named.",
			spec:   without(func(s *fleetv1alpha1.HealthRuleSpec) { s.Message = "" }), object: inPhase("Odd"),
			want: progressing(appsv1alpha1.ReasonRuleNotHealthy, `HealthRule "db": healthy is false`),
		},
		"EmptyMessage": {
			reason: "An empty message says nothing.",
			spec:   without(func(s *fleetv1alpha1.HealthRuleSpec) { s.Message = "''" }), object: inPhase("Failed"),
			want: degraded(appsv1alpha1.ReasonRuleDegraded, `HealthRule "db": degraded is true`),
		},
		"MessageFails": {
			reason: "The health of an object does not depend on whether its message can be computed.",
			spec:   without(func(s *fleetv1alpha1.HealthRuleSpec) { s.Message = "object.status.detail" }), object: inPhase("Failed"),
			want: degraded(appsv1alpha1.ReasonRuleDegraded, `HealthRule "db": degraded is true; its message failed: no such key: detail`),
		},
		"MessageOfAnotherType": {
			reason: "Only text can be shown.",
			spec:   without(func(s *fleetv1alpha1.HealthRuleSpec) { s.Message = "object.spec.size" }),
			object: database(func(object map[string]any) { object["status"] = map[string]any{"phase": "Failed"} }),
			want:   degraded(appsv1alpha1.ReasonRuleDegraded, `HealthRule "db": degraded is true; its message failed: its value is of the type int, not string`),
		},
		"MissingField": {
			reason: "The rule failed, so its result is unknown.", spec: byPhase,
			object: database(func(object map[string]any) { object["status"] = map[string]any{"ready": true} }),
			want:   unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db", degraded: no such key: phase`),
		},
		"OptionalField": {
			reason: "Expressions can ask for what may be missing.",
			spec:   fleetv1alpha1.HealthRuleSpec{Healthy: "object.?status.?phase.orValue('Running') == 'Running'"},
			object: database(func(object map[string]any) { object["status"] = map[string]any{"ready": true} }), want: healthy(),
		},
		"NoStatus": {
			reason: "Most rules fail before a controller has reported the status. This is not reported as an error of the rule.",
			spec:   byPhase, object: noStatusAtAll, want: unknown(appsv1alpha1.ReasonNoStatus, "It has no status yet"),
		},
		"NoStatusNeeded": {
			reason: "A rule that asks for no status decides without one.",
			spec:   fleetv1alpha1.HealthRuleSpec{Healthy: "object.spec.size > 2"}, object: noStatusAtAll, want: healthy(),
		},
		"NoStatusEver": {
			reason: "A rule that asks for the status of a kind that has none is wrong.",
			spec:   byPhase, object: noStatusAtAll, statusUnexpected: true,
			want: unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db", degraded: no such key: status`),
		},
		"NotABool": {
			reason: "What is in an object can be of any type.",
			spec:   fleetv1alpha1.HealthRuleSpec{Healthy: "object.status.phase"}, object: database(nil),
			want: unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db", healthy: its value is of the type string, not bool`),
		},
		"BoolOfTheObject": {
			reason: "A field can be the answer.", spec: fleetv1alpha1.HealthRuleSpec{Healthy: "object.status.ready"},
			object: database(nil), want: healthy(),
		},
		"TooExpensive": {
			reason: "A large object must not keep the manager busy.",
			spec:   fleetv1alpha1.HealthRuleSpec{Healthy: "object.items.all(a, object.items.all(b, a == b))"},
			object: database(func(object map[string]any) {
				object["items"] = slices.Repeat([]any{"same"}, 5000)
			}),
			want: unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db", healthy: it exceeds the cost limit for this object`),
		},
		"LongList": {
			reason: "What an honest object has is not too much.",
			spec:   fleetv1alpha1.HealthRuleSpec{Healthy: "object.status.nodes.all(n, has(n.ready) && n.ready)"},
			object: database(func(object map[string]any) {
				object["status"] = map[string]any{"nodes": slices.Repeat([]any{map[string]any{"ready": true}}, 1000)}
			}),
			want: healthy(),
		},
		"Terminating": {
			reason: "An object that is being deleted is Progressing, regardless of the rule.",
			spec:   byPhase,
			object: database(func(object map[string]any) {
				object["metadata"] = map[string]any{"name": "main", "deletionTimestamp": "2026-01-02T03:04:05Z"}
			}),
			want: progressing(appsv1alpha1.ReasonTerminating, "It is being deleted"),
		},
		"CannotCompile": {
			reason: "A rule with a mistake in it must not make objects healthy that it would have called degraded.",
			spec:   fleetv1alpha1.HealthRuleSpec{Degraded: "objct.status.failed"}, object: database(nil),
			want: unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db" cannot be compiled`),
		},
		"LibrariesOfKubernetes": {
			reason: "Expressions can do what those of a ValidatingAdmissionPolicy can.",
			spec: fleetv1alpha1.HealthRuleSpec{
				Healthy: "quantity('1Gi').isGreaterThan(quantity('500Mi')) && object.status.phase.lowerAscii() == 'running' && [1, 2].sum() == 3",
			},
			object: database(nil), want: healthy(),
		},
		"HostileMessage": {
			reason: "What an object says is bounded.",
			spec:   fleetv1alpha1.HealthRuleSpec{Degraded: "true", Message: "object.status.message"},
			object: database(func(object map[string]any) {
				object["status"] = map[string]any{"message": "\x1b[2J" + strings.Repeat("x", 1000)}
			}),
			want: degraded(appsv1alpha1.ReasonRuleDegraded, "[2J"+strings.Repeat("x", 251)+"…"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.spec.Group, tc.spec.Kind = "db.example.org", "Database"
			got := New(Compile("db", tc.spec)).Assess(tc.object, !tc.statusUnexpected)
			checkValid(t, got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   fleetv1alpha1.HealthRuleSpec
		want   string // A part of the error; empty if there is none.
	}{
		"Valid":      {reason: "A rule needs one expression.", spec: fleetv1alpha1.HealthRuleSpec{Healthy: "true"}},
		"Undeclared": {reason: "object is the only variable.", spec: fleetv1alpha1.HealthRuleSpec{Healthy: "request.user == 'a'"}, want: "healthy: 1:1: undeclared reference to 'request'"},
		"Syntax":     {reason: "The place of the mistake is named.", spec: fleetv1alpha1.HealthRuleSpec{Degraded: "object.status ="}, want: "degraded: 1:15: "},
		"Type":       {reason: "An expression is a question.", spec: fleetv1alpha1.HealthRuleSpec{Suspended: "1 + 1"}, want: "suspended: its value is of the type int, and must be of the type bool"},
		"Message":    {reason: "A message is text.", spec: fleetv1alpha1.HealthRuleSpec{Healthy: "true", Message: "1"}, want: "message: its value is of the type int, and must be of the type string"},
		"All":        {reason: "All mistakes are named at once.", spec: fleetv1alpha1.HealthRuleSpec{Healthy: "1", Progressing: "2"}, want: "progressing: its value is of the type int, and must be of the type bool; healthy: its value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Compile("db", tc.spec).Err()
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%s: want %q, got %v", tc.reason, tc.want, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("the text has more than one line: %q", err)
			}
		})
	}
}

func TestRulesOfOneKind(t *testing.T) {
	rule := func(name, kind, degraded, message string) *Rule {
		return Compile(name, fleetv1alpha1.HealthRuleSpec{Group: "db.example.org", Kind: kind, Degraded: degraded, Message: fmt.Sprintf("%q", message)})
	}
	a := New(rule("a", "User", "true", "other kind"), rule("b", "Database", "phase() == 'Odd'", "first"), rule("c", "Database", "true", "second"))
	for phase, want := range map[string]string{"Odd": "first", "Running": "second"} {
		if got := a.Assess(inPhase(phase), true); got.Message != want {
			t.Errorf("phase %s: want the %s rule of the kind, got %+v", phase, want, got)
		}
	}
	for name, tc := range map[string]struct {
		spec fleetv1alpha1.HealthRuleSpec
		want bool
	}{
		"a rule that says what is healthy": {fleetv1alpha1.HealthRuleSpec{Kind: "Database", Healthy: "true"}, true},
		"a rule that does not":             {fleetv1alpha1.HealthRuleSpec{Kind: "Database", Degraded: "true"}, false},
		"a rule that leaves the rest":      {fleetv1alpha1.HealthRuleSpec{Kind: "Database", Healthy: "true", Otherwise: fleetv1alpha1.OtherwiseNext}, false},
		"a rule that cannot be compiled":   {fleetv1alpha1.HealthRuleSpec{Kind: "Database", Degraded: "x"}, true},
	} {
		if got := Compile("r", tc.spec).Decides(); got != tc.want {
			t.Errorf("%s: want %v, got %v", name, tc.want, got)
		}
	}
}

// An object that makes a rule fail is Unknown itself, and does not affect others, even concurrently.
func TestOneObjectChangesNoOther(t *testing.T) {
	a := New(Compile("db", fleetv1alpha1.HealthRuleSpec{
		Group: "db.example.org", Kind: "Database", Healthy: "object.items.all(a, object.items.all(b, a == b))", Message: "object.status.message",
	}))
	with := func(items int) *unstructured.Unstructured {
		return database(func(object map[string]any) { object["items"] = slices.Repeat([]any{"same"}, items) })
	}
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			large, missing, small := with(5000), database(nil), with(3)
			for range 5 {
				for name, tc := range map[string]struct {
					object *unstructured.Unstructured
					want   Result
				}{
					"large":   {large, unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db", healthy: it exceeds the cost limit for this object`)},
					"missing": {missing, unknown(appsv1alpha1.ReasonRuleFailed, `HealthRule "db", healthy: no such key: items`)},
					"small":   {small, healthy()},
				} {
					if got := a.Assess(tc.object, true); got != tc.want {
						t.Errorf("%s: want %+v, got %+v", name, tc.want, got)
					}
				}
			}
		})
	}
	asking.Wait()
}
