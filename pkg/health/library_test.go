// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/healthcases"
	"github.com/masthead-dev/masthead/pkg/health"
)

func newLibrary(tb testing.TB) *health.Library {
	tb.Helper()
	library, err := health.NewLibrary()
	if err != nil {
		tb.Fatal(err)
	}
	return library
}

// TestLibrary judges every fixture of the library, for each kind of its rule. The fixtures of a rule have to show each
// state that it can report. Those without a rule are of kinds that are understood without one.
func TestLibrary(t *testing.T) {
	library := newLibrary(t)
	assessor := library.New()
	fixtures, err := healthcases.Fixtures("library/testdata")
	if err != nil {
		t.Fatal(err)
	}
	used := sets.New[string]()
	seen := map[health.Selector]string{}
	for _, project := range library.Projects {
		for _, rule := range project.Rules {
			selectors := health.Compile(project.Name, rule.HealthRuleSpec).Selectors()
			key := healthcases.Key(selectors[0].Group, selectors[0].Kind)
			t.Run(key, func(t *testing.T) {
				if err := health.Compile(project.Name, rule.HealthRuleSpec).Err(); err != nil {
					t.Fatalf("the rule cannot be compiled: %v", err)
				}
				if rule.Source == "" {
					t.Error("the rule does not name its source")
				}
				for _, s := range selectors {
					if other, taken := seen[s]; taken {
						t.Errorf("there is another rule for %+v: %s", s, other)
					}
					seen[s] = key
				}
				used.Insert(key)
				shown := sets.New[appsv1alpha1.Health]()
				for n, fixture := range fixtures[key] {
					shown.Insert(fixture.Want)
					for _, s := range selectors {
						obj := fixture.Object(healthcases.Example(s.Group, s.Version, s.Kind))
						before := obj.DeepCopy()
						got := assessor.Assess(obj, true)
						if got.Health != fixture.Want {
							t.Errorf("fixture %d as %s: want %s, got %+v", n, obj.GroupVersionKind(), fixture.Want, got)
						}
						if got.Health != appsv1alpha1.HealthHealthy && (got.Message == "" || got.Reason == "") {
							t.Errorf("fixture %d as %s has no message or reason: %+v", n, obj.GroupVersionKind(), got)
						}
						if !equal(before, obj) {
							t.Errorf("fixture %d was changed", n)
						}
					}
				}
				if missing := ruleStates(rule.HealthRuleSpec).Difference(shown); missing.Len() > 0 {
					t.Errorf("no fixture shows %v", sets.List(missing))
				}
			})
		}
	}
	for key, list := range fixtures {
		if used.Has(key) {
			continue
		}
		// No rule of their own is needed for these kinds.
		kind, group, _ := strings.Cut(key, ".")
		for n, fixture := range list {
			if got := assessor.Assess(fixture.Object(group, "v1", kind), true); got.Health != fixture.Want {
				t.Errorf("%s, fixture %d: want %s, got %+v", key, n, fixture.Want, got)
			}
		}
	}
}

func equal(a, b *unstructured.Unstructured) bool {
	one, err1 := a.MarshalJSON()
	other, err2 := b.MarshalJSON()
	return err1 == nil && err2 == nil && slices.Equal(one, other)
}

// ruleStates are the states that a rule can report.
func ruleStates(spec fleetv1alpha1.HealthRuleSpec) sets.Set[appsv1alpha1.Health] {
	states := sets.New[appsv1alpha1.Health]()
	for health, expression := range map[appsv1alpha1.Health]string{
		appsv1alpha1.HealthDegraded: spec.Degraded, appsv1alpha1.HealthSuspended: spec.Suspended,
		appsv1alpha1.HealthProgressing: spec.Progressing, appsv1alpha1.HealthHealthy: spec.Healthy,
	} {
		if expression != "" {
			states.Insert(health)
		}
	}
	switch {
	case spec.Otherwise == fleetv1alpha1.OtherwiseUnknown:
		states.Insert(appsv1alpha1.HealthUnknown)
	case spec.Healthy != "" && spec.Healthy != "true" && spec.Healthy != "has(object.status)":
		states.Insert(appsv1alpha1.HealthProgressing)
	}
	return states
}

// A status about an older generation says nothing, regardless of the rule's expressions, unless the rule says that it
// judges such a status.
func TestLibraryWaitsForTheLatestGeneration(t *testing.T) {
	assessor := newLibrary(t).New()
	for name, status := range map[string]map[string]any{
		"in the status":    {"observedGeneration": int64(1), "phase": "Healthy"},
		"as a string":      {"observedGeneration": "1", "phase": "Healthy"},
		"in the condition": {"phase": "Healthy", "conditions": []any{map[string]any{"type": "Ready", "status": "True", "observedGeneration": int64(1)}}},
	} {
		got := assessor.Assess(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": map[string]any{"generation": int64(2)}, "status": status,
		}}, true)
		if got.Health != appsv1alpha1.HealthProgressing || got.Reason != appsv1alpha1.ReasonNotObserved {
			t.Errorf("%s: want Progressing, got %+v", name, got)
		}
	}
}

// The hub's rules come before the library's if they are as specific, and the library's before those that are for more
// kinds.
func TestHubRulesAndTheLibrary(t *testing.T) {
	certificate := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	rule := func(change func(*fleetv1alpha1.HealthRuleSpec)) *health.Rule {
		spec := fleetv1alpha1.HealthRuleSpec{Groups: []string{"cert-manager.io"}, Kinds: []string{"Certificate"}, Degraded: "true"}
		change(&spec)
		return health.Compile("hub", spec)
	}
	cases := map[string]struct {
		reason string
		change func(*fleetv1alpha1.HealthRuleSpec)
		want   appsv1alpha1.Health
	}{
		"SameKind": {
			reason: "Who writes a rule for the kind wants another one.",
			change: func(*fleetv1alpha1.HealthRuleSpec) {}, want: appsv1alpha1.HealthDegraded,
		},
		"OpenRule": {
			reason: "A rule that has nothing to say leaves the library in force.",
			change: func(s *fleetv1alpha1.HealthRuleSpec) { s.Degraded = "false" }, want: appsv1alpha1.HealthHealthy,
		},
		"AllKindsOfTheGroup": {
			reason: "The library's rule is for the kind.",
			change: func(s *fleetv1alpha1.HealthRuleSpec) { s.Kinds = []string{"*"} }, want: appsv1alpha1.HealthHealthy,
		},
		"AllGroups": {
			reason: "As above.",
			change: func(s *fleetv1alpha1.HealthRuleSpec) { s.Groups = []string{"*"} }, want: appsv1alpha1.HealthHealthy,
		},
		"OtherVersion": {
			reason: "The object has another version.",
			change: func(s *fleetv1alpha1.HealthRuleSpec) { s.Versions = []string{"v1alpha2"} }, want: appsv1alpha1.HealthHealthy,
		},
		"ThisVersion": {
			reason: "A rule for a version is more specific than one for all.",
			change: func(s *fleetv1alpha1.HealthRuleSpec) { s.Versions = []string{"v1"} }, want: appsv1alpha1.HealthDegraded,
		},
	}
	library := newLibrary(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := library.New(rule(tc.change)).Assess(certificate, true); got.Health != tc.want {
				t.Errorf("%s: want %s, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}
