// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/health"
)

// rulesFixture is a hub whose HealthRules are followed.
type rulesFixture struct {
	controllertest.Case

	hub   client.Client
	rules *Rules

	mu      sync.Mutex
	changes [][]health.Selector
}

func newRulesFixture(t *testing.T) *rulesFixture {
	t.Helper()
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := testenv.Start(env)
	if err != nil {
		t.Fatalf("cannot start an API server: %v", err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	scheme := runtime.NewScheme()
	if err := fleetv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	f := &rulesFixture{Case: controllertest.Case{T: t, Ctx: t.Context(), Patience: time.Minute}}
	if f.hub, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	f.rules = New(mgr.GetClient(), mgr.GetClient(), clock.RealClock{}, nil, func(selectors []health.Selector) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changes = append(f.changes, selectors)
	})
	if _, ok := f.rules.Assessor(); ok {
		t.Error("there is an assessor before the rules have been read")
	}
	if err := f.rules.Setup(mgr, new(true)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return f
}

func (f *rulesFixture) create(name string, spec fleetv1alpha1.HealthRuleSpec) *fleetv1alpha1.HealthRule {
	f.T.Helper()
	rule := &fleetv1alpha1.HealthRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if err := f.hub.Create(f.T.Context(), rule); err != nil {
		f.T.Fatal(err)
	}
	return rule
}

func (f *rulesFixture) edit(rule *fleetv1alpha1.HealthRule, change func(*fleetv1alpha1.HealthRuleSpec)) {
	f.T.Helper()
	f.Within("editing "+rule.Name, func() error {
		if err := f.hub.Get(f.T.Context(), client.ObjectKeyFromObject(rule), rule); err != nil {
			return err
		}
		change(&rule.Spec)
		return f.hub.Update(f.T.Context(), rule)
	})
}

// says waits until a rule has the wanted condition Ready, for its current generation.
func (f *rulesFixture) says(rule *fleetv1alpha1.HealthRule, reason, message string) {
	f.T.Helper()
	f.Within("the condition of "+rule.Name, func() error {
		if err := f.hub.Get(f.T.Context(), client.ObjectKeyFromObject(rule), rule); err != nil {
			return err
		}
		if rule.Status.ObservedGeneration != rule.Generation || len(rule.Status.Conditions) == 0 {
			return fmt.Errorf("not seen yet: %+v", rule.Status)
		}
		c := rule.Status.Conditions[0]
		status := metav1.ConditionFalse
		if reason == fleetv1alpha1.ReasonCompiled {
			status = metav1.ConditionTrue
		}
		if c.Type != fleetv1alpha1.ConditionReady || c.Status != status || c.Reason != reason || c.ObservedGeneration != rule.Generation ||
			!strings.Contains(c.Message, message) {
			return fmt.Errorf("want %s %q, got %+v", reason, message, c)
		}
		if stalled := meta.IsStatusConditionTrue(rule.Status.Conditions, fleetv1alpha1.ConditionStalled); stalled == (status == metav1.ConditionTrue) {
			return fmt.Errorf("Ready is %s and Stalled is %t", status, stalled)
		}
		return nil
	})
}

// hasHealth waits until a database in a phase has the wanted health.
func (f *rulesFixture) hasHealth(phase string, want appsv1alpha1.Health, reason string) {
	f.T.Helper()
	f.Within("the health of a database", func() error {
		a, ok := f.rules.Assessor()
		if !ok {
			return errors.New("the rules have not been read")
		}
		got := a.Assess(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "db.example.org/v1", "kind": "Database", "status": map[string]any{"phase": phase},
		}}, true)
		if got.Health != want || got.Reason != reason {
			return fmt.Errorf("want %s %s, got %+v", want, reason, got)
		}
		return nil
	})
}

// reported waits until the last reported change is of certain kinds, and returns the number of changes.
func (f *rulesFixture) reported(kinds ...health.Selector) int {
	f.T.Helper()
	n := 0
	f.Within("a change is reported", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		n = len(f.changes)
		if n == 0 || !slices.Equal(f.changes[n-1], kinds) {
			return fmt.Errorf("want %v as the last of %v", kinds, f.changes)
		}
		return nil
	})
	return n
}

func TestHealthRules(t *testing.T) {
	f := newRulesFixture(t)
	databases := health.Selector{Group: "db.example.org", Kind: "Database"}
	byPhase := fleetv1alpha1.HealthRuleSpec{Group: databases.Group, Kind: databases.Kind, Healthy: "object.status.phase == 'Running'"}

	// Without a rule, the controller knows that there is none.
	if n := f.reported(); n != 1 {
		t.Errorf("want one change to begin with, got %d", n)
	}
	f.hasHealth("Odd", appsv1alpha1.HealthUnknown, appsv1alpha1.ReasonNotUnderstood)

	// A rule is followed, and its author can see that.
	first := f.create("a", byPhase)
	f.says(first, fleetv1alpha1.ReasonCompiled, "followed")
	f.reported(databases)
	f.hasHealth("Odd", appsv1alpha1.HealthProgressing, appsv1alpha1.ReasonRuleNotHealthy)
	f.hasHealth("Running", appsv1alpha1.HealthHealthy, "")

	// A change of it counts at once.
	before := f.reported(databases)
	f.edit(first, func(s *fleetv1alpha1.HealthRuleSpec) { s.Degraded = "object.status.phase == 'Odd'" })
	f.says(first, fleetv1alpha1.ReasonCompiled, "followed")
	f.hasHealth("Odd", appsv1alpha1.HealthDegraded, appsv1alpha1.ReasonRuleDegraded)
	if now := f.reported(databases); now != before+1 {
		t.Errorf("want one more change than %d, got %d: writing a status changes nothing", before, now)
	}

	// A younger rule for the same kind waits, and says for which.
	second := f.create("b", byPhase)
	f.says(second, fleetv1alpha1.ReasonShadowed, `HealthRule "a" is older`)
	if now := f.reported(databases); now != before+1 {
		t.Errorf("want no change after the %d before, got %d: the rule that is followed is the same", before+1, now)
	}

	// A mistake is shown, and makes nothing healthy.
	f.edit(first, func(s *fleetv1alpha1.HealthRuleSpec) { s.Degraded = "object.status.phase = 'Odd'" })
	f.says(first, fleetv1alpha1.ReasonCannotCompile, "degraded: 1:21: ")
	f.says(second, fleetv1alpha1.ReasonShadowed, `HealthRule "a" is older`)
	f.hasHealth("Running", appsv1alpha1.HealthUnknown, appsv1alpha1.ReasonRuleFailed)

	// The next one takes over when the first is deleted, and without any the kind is assessed as before.
	if err := f.hub.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	f.says(second, fleetv1alpha1.ReasonCompiled, "followed")
	f.hasHealth("Odd", appsv1alpha1.HealthProgressing, appsv1alpha1.ReasonRuleNotHealthy)
	written := second.ResourceVersion
	other := f.create("other", fleetv1alpha1.HealthRuleSpec{Kind: "Other", Healthy: "true"})
	f.says(other, fleetv1alpha1.ReasonCompiled, "followed")
	f.reported(health.Selector{Kind: "Other"})
	f.says(second, fleetv1alpha1.ReasonCompiled, "followed")
	if second.ResourceVersion != written {
		t.Error("the status was written again, and nothing had changed")
	}
	if err := f.hub.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	f.hasHealth("Odd", appsv1alpha1.HealthUnknown, appsv1alpha1.ReasonNotUnderstood)
	f.reported(databases)

	// A rule for several kinds is followed for those that no older rule is for, and says for which it is not.
	several := f.create("several", fleetv1alpha1.HealthRuleSpec{
		Groups: []string{"*.example.org"}, Kinds: []string{"*"}, Healthy: "phase() == 'Odd'",
	})
	f.says(several, fleetv1alpha1.ReasonCompiled, "followed")
	f.reported(health.Selector{Group: "*.example.org", Kind: "*"})
	f.hasHealth("Odd", appsv1alpha1.HealthHealthy, "")
	partly := f.create("partly", fleetv1alpha1.HealthRuleSpec{Kinds: []string{"Other", "Another"}, Healthy: "true"})
	f.says(partly, fleetv1alpha1.ReasonCompiled, `but not for Other: HealthRule "other" is older`)
	f.reported(health.Selector{Kind: "Another"})
	wild := f.create("wild", fleetv1alpha1.HealthRuleSpec{Groups: []string{"*.example.org"}, Kinds: []string{"*"}, Healthy: "true"})
	f.says(wild, fleetv1alpha1.ReasonShadowed, `HealthRule "several" is older`)

	// A rule that leaves a part of the health undecided lets a younger one decide it.
	open := f.create("open", fleetv1alpha1.HealthRuleSpec{
		Group: databases.Group, Kind: databases.Kind, Degraded: "phase() == 'Burning'",
	})
	f.says(open, fleetv1alpha1.ReasonCompiled, "followed")
	next := f.create("opener", fleetv1alpha1.HealthRuleSpec{Group: databases.Group, Kind: databases.Kind, Healthy: "phase() == 'Calm'"})
	f.says(next, fleetv1alpha1.ReasonCompiled, "followed")
	f.hasHealth("Burning", appsv1alpha1.HealthDegraded, appsv1alpha1.ReasonRuleDegraded)
	f.hasHealth("Calm", appsv1alpha1.HealthHealthy, "")
	for _, rule := range []*fleetv1alpha1.HealthRule{open, next} {
		if err := f.hub.Delete(t.Context(), rule); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("Sample", func(t *testing.T) { testSampleRules(t, f) })
}

// testSampleRules checks that the API server accepts the rules that are shipped and shown in docs/health.md, and
// that they compile.
func testSampleRules(t *testing.T, f *rulesFixture) {
	t.Helper()
	folder := filepath.Join(testenv.Root(), "config", "samples", "health")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) == 0 {
		t.Fatalf("there are no samples in %s (%v)", folder, err)
	}
	page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "health.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		_, manifest, _ := strings.Cut(string(data), "apiVersion:")
		if !strings.Contains(string(page), "apiVersion:"+manifest) {
			t.Errorf("docs/health.md does not show %s as it is", e.Name())
		}
		var rule fleetv1alpha1.HealthRule
		if err := yaml.UnmarshalStrict(data, &rule); err != nil {
			t.Fatalf("%s: %v", e.Name(), err)
		}
		if err := f.hub.Create(t.Context(), &rule); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
			continue
		}
		f.says(&rule, fleetv1alpha1.ReasonCompiled, "followed")
	}
}

func TestFollow(t *testing.T) {
	rule := func(name string, age time.Duration, generation int64, kind string) fleetv1alpha1.HealthRule {
		return fleetv1alpha1.HealthRule{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: types.UID(name), Generation: generation,
				CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(-age)),
			},
			Spec: fleetv1alpha1.HealthRuleSpec{Kind: kind, Healthy: "true"},
		}
	}
	pods, jobs := health.Selector{Kind: "Pod"}, health.Selector{Kind: "Job"}
	cases := map[string]struct {
		reason        string
		before, rules []fleetv1alpha1.HealthRule
		chosen        map[health.Selector]types.UID
		changed       []health.Selector
	}{
		"None": {reason: "Without rules nothing is chosen.", chosen: map[health.Selector]types.UID{}},
		"Oldest": {
			reason: "The oldest rule for a kind counts.",
			rules:  []fleetv1alpha1.HealthRule{rule("a", 0, 1, "Pod"), rule("b", time.Hour, 1, "Pod"), rule("c", 0, 1, "Job")},
			chosen: map[health.Selector]types.UID{pods: "b", jobs: "c"}, changed: []health.Selector{jobs, pods},
		},
		"Name": {
			reason: "Rules that were created together are ordered by name, or restarts would change what is followed.",
			rules:  []fleetv1alpha1.HealthRule{rule("b", 0, 1, "Pod"), rule("a", 0, 1, "Pod")},
			chosen: map[health.Selector]types.UID{pods: "a"}, changed: []health.Selector{pods},
		},
		"Same": {
			reason: "What is as before has to be assessed as before.",
			before: []fleetv1alpha1.HealthRule{rule("a", 0, 1, "Pod")}, rules: []fleetv1alpha1.HealthRule{rule("a", 0, 1, "Pod")},
			chosen: map[health.Selector]types.UID{pods: "a"},
		},
		"Edited": {
			reason: "Objects of the kind have to be assessed again.",
			before: []fleetv1alpha1.HealthRule{rule("a", 0, 1, "Pod")}, rules: []fleetv1alpha1.HealthRule{rule("a", 0, 2, "Pod")},
			chosen: map[health.Selector]types.UID{pods: "a"}, changed: []health.Selector{pods},
		},
		"Moved": {
			reason: "A rule for another kind than before changes both.",
			before: []fleetv1alpha1.HealthRule{rule("a", 0, 1, "Pod")}, rules: []fleetv1alpha1.HealthRule{rule("a", 0, 2, "Job")},
			chosen: map[health.Selector]types.UID{jobs: "a"}, changed: []health.Selector{jobs, pods},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before *followed
			if tc.before != nil {
				before = follow(tc.before, nil, nil)
			}
			slices.SortFunc(tc.rules, olderFirst)
			now := follow(tc.rules, before, nil)
			chosen := map[health.Selector]types.UID{}
			for kind, at := range now.chosen {
				chosen[kind] = at[0].uid
			}
			if diff := cmp.Diff(tc.chosen, chosen); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			changed := differences(before, now)
			slices.SortFunc(changed, func(a, b health.Selector) int { return strings.Compare(a.Kind, b.Kind) })
			if diff := cmp.Diff(tc.changed, changed); diff != "" {
				t.Errorf("%s\nchanged, -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
