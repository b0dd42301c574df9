// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestObjectsOfTheHubWithoutAClaimAndStraysAreCounted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.counts("what has a claim is not counted", 0)

	ghost := f.NewClaim(f.Target, "ghost")
	ghost.Object["spec"] = map[string]any{"version": "5.7"}
	ghost.SetAnnotations(ownership.Source{Identifier: f.Identifier, Namespace: f.Namespace}.Annotations())
	f.Create(f.Hub, ghost)
	foreign := f.NewClaim(f.Target, "foreign")
	foreign.Object["spec"] = map[string]any{"version": "5.7"}
	foreign.SetAnnotations(ownership.Source{Identifier: "another-cluster", Namespace: f.Namespace}.Annotations())
	f.Create(f.Hub, foreign)
	f.counts("what names this cluster and has no claim there is counted, what names another is not", 1)
	f.WaitForIdle()
	if _, err := f.GetClaim(f.Hub, f.Target, "ghost"); err != nil {
		t.Errorf("want it left alone, because a cluster that replaces a lost one begins empty; got %v", err)
	}

	f.CreateClaim("ghost", func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, "8", "spec", "version") })
	f.WaitForSynced("ghost", fleetv1alpha1.ReasonSynced)
	f.counts("a claim that is there takes it over", 0)

	// Strays are not obeyed (TestTenancyStrayHarmsNoClaim), but a metric reports them.
	hub := f.settledClaim("settled")
	f.gauge("masthead_agent_strays", "the claim's own object is none", 0)
	stray := f.NewClaim(f.CreateHubNamespace(f.Class+"-elsewhere"), "settled")
	stray.SetAnnotations(hub.GetAnnotations())
	f.Create(f.Hub, stray)
	f.gauge("masthead_agent_strays", "one that names the claim elsewhere is one", 1)
	f.counts("and no orphan", 0)
	if err := f.Hub.Delete(f.Ctx, stray); err != nil {
		t.Fatal(err)
	}
	f.gauge("masthead_agent_strays", "it is gone", 0)
}

// TestObjectOfAClaimThatWentWithoutMastheadStays: a claim goes in spite of its finalizer, right after its object was
// created. That its finalizer is removed by force may be observed; that it is deleted while the manager is killed is
// not. A missing claim proves nothing, and one that wanted its object kept is gone.
func TestObjectOfAClaimThatWentWithoutMastheadStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stays := func(names ...string) {
		t.Helper()
		f.counts("what is left is counted", float64(len(names)))
		f.WaitForIdle()
		for _, name := range names {
			if hub, err := f.GetClaim(f.Hub, f.Target, name); err != nil || hub.GetDeletionTimestamp() != nil {
				t.Errorf("want %q left alone, got %v", name, err)
			}
		}
	}
	f.CreateClaim("forced", agenttest.WithDeletionPolicy("misspelt"))
	f.WaitForPushed("forced")
	f.WaitForSynced("forced", fleetv1alpha1.ReasonSynced)
	claim := f.NewClaim(f.Namespace, "forced")
	f.Edit(f.Workload, claim, func() {})
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForSynced("forced", fleetv1alpha1.ReasonInvalidDeletionPolicy)
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers(nil) })
	f.WaitForGone(f.Workload, f.Namespace, "forced")
	stays("forced")

	f.CreateClaim("unseen", agenttest.WithDeletionPolicy("Orphan"))
	f.WaitForSynced("unseen", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	f.stopAgent()
	claim = f.NewClaim(f.Namespace, "unseen")
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers(nil) })
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "unseen")
	f.restart()
	stays("forced", "unseen")

	t.Log("a claim of the name takes it over, and its end counts again")
	for _, name := range []string{"forced", "unseen"} {
		f.CreateClaim(name)
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
		if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, name)); err != nil {
			t.Fatal(err)
		}
		f.WaitForGone(f.Hub, f.Target, name)
	}
	stays()
}

// counts waits until the metric reports this many hub objects without a claim.
func (f *fixture) counts(why string, want float64) {
	f.T.Helper()
	f.gauge("masthead_agent_orphans", why, want)
}

// gauge waits until a metric of the fixture's cluster has a value.
func (f *fixture) gauge(name, why string, want float64) {
	f.T.Helper()
	f.Within(why, func() error {
		families, err := f.registry.Gather()
		if err != nil {
			return err
		}
		for _, family := range families {
			if family.GetName() != name {
				continue
			}
			if got := family.GetMetric()[0].GetGauge().GetValue(); got != want {
				return fmt.Errorf("%s is %v, want %v", name, got, want)
			}
			return nil
		}
		return fmt.Errorf("there is no %s", name)
	})
}
