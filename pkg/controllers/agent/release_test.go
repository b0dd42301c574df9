// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// withDeletionPolicy sets the deletion policy annotation of a claim.
func withDeletionPolicy(policy string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{fleetv1alpha1.DeletionPolicyAnnotation: policy})
	}
}

func orphaning(c *fleetv1alpha1.EnrollmentClass) {
	c.Spec.Agent.DeletionPolicy = fleetv1alpha1.DeletionPolicyOrphan
}

func TestOrphanedClaimLeavesItsObjectToNobody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		options []func(*fleetv1alpha1.EnrollmentClass)
		edit    func(*unstructured.Unstructured)
	}{
		"ByTheClass": {reason: "The class says Orphan, and the claim cannot change that.", options: []func(*fleetv1alpha1.EnrollmentClass){orphaning}, edit: withDeletionPolicy("Delete")},
		"ByTheClaim": {reason: "The claim asks for it.", edit: withDeletionPolicy("Orphan")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, tc.options...)
			claim := f.claim("db", tc.edit)
			before := f.pushed("db")
			f.synced("db", reason.ReasonSynced)
			if err := f.workload.Delete(f.Ctx, claim); err != nil {
				t.Fatal(err)
			}
			f.gone(f.workload, f.namespace, "db")
			f.settled()

			hub, err := f.get(f.hub, f.target, "db")
			if err != nil || hub.GetUID() != before.GetUID() || hub.GetDeletionTimestamp() != nil {
				t.Fatalf("%s want the object to stay, got %v (%v)", tc.reason, hub.Object, err)
			}
			if diff := cmp.Diff(before.Object["spec"], hub.Object["spec"]); diff != "" {
				t.Errorf("%s want its spec as it was (-want +got):\n%s", tc.reason, diff)
			}
			// Its namespace stays recorded, so that another one of that name does not take it back.
			want := ownership.ResidenceOf(before).Annotations()
			want[fleetv1alpha1.ReleasedFromAnnotation] = ownership.Source{Identifier: f.identifier, Namespace: f.namespace}.String()
			if diff := cmp.Diff(want, hub.GetAnnotations()); diff != "" {
				t.Errorf("%s want it to name no source but the one that it had (-want +got):\n%s", tc.reason, diff)
			}
			for _, e := range hub.GetManagedFields() {
				if e.Manager == ownership.FieldManager(f.identifier) {
					t.Errorf("%s want our field manager to be gone, got %v", tc.reason, e)
				}
			}

			// A released object is not free, not even for its former owner.
			f.claim("db")
			f.synced("db", reason.ReasonConflict)
		})
	}
}

func TestMisspeltDeletionPolicyDeletesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db", withDeletionPolicy("orphan"))
	f.pushed("db")
	f.synced("db", reason.ReasonSynced)
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.synced("db", reason.ReasonInvalidDeletionPolicy)
	f.settled()
	if hub, err := f.get(f.hub, f.target, "db"); err != nil || hub.GetDeletionTimestamp() != nil {
		t.Fatalf("want the object in the hub to stay, got %v (%v)", hub.Object, err)
	}
	f.Edit(f.workload, claim, func() { withDeletionPolicy("Delete")(claim) })
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
}

// TestClaimThatVanishesWhileItIsLookedForIsNotForgotten: a claim vanishes just after a reconcile has found neither the
// claim nor its last state.
func TestClaimThatVanishesWhileItIsLookedForIsNotForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("db")
	f.synced("db", reason.ReasonSynced)
	f.settled()
	w, ok := f.agent.workloads.Get(f.cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kind, _ := w.KindOf(f.crd().Name)
	ghost := f.object(f.namespace, "ghost")
	req := w.Request(kind, ghost)

	f.looked.mu.Lock() // Forgetting a claim blocks here.
	unlock := sync.OnceFunc(f.looked.mu.Unlock)
	defer unlock()
	looked := make(chan error)
	go func() {
		_, _, err := f.agent.requirements.claimOf(f.Ctx, w, req)
		looked <- err
	}()
	f.Within("the claim is found not to be there", func() error {
		stacks := make([]byte, 8<<20)
		if !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*requirementReconciler).claimOf") {
			return errors.New("it was not looked for yet")
		}
		if !strings.Contains(string(stacks), "(*toldClaims).Requirement") {
			return errors.New("it is being looked for")
		}
		return nil
	})
	f.agent.requirements.vanish(req, ghost)
	unlock()
	if err := <-looked; err != nil {
		t.Fatal(err)
	}
	if f.agent.requirements.ledger.Of(req).Vanished == nil {
		t.Error("want the last state of the claim to be kept until its object in the hub is looked for")
	}
}

func TestClaimThatVanishesIsOrphanedIfItsPolicySaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, orphaning)
	f.claim("db")
	f.pushed("db")
	w, ok := f.agent.workloads.Get(f.cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kind, _ := w.KindOf(f.crd().Name)
	ghost := f.object(f.target, "ghost")
	ghost.SetAnnotations(ownership.Source{Identifier: f.identifier, Namespace: f.namespace}.Annotations())
	ghost.Object["spec"] = map[string]any{"version": "8"}
	f.Create(f.hub, ghost)

	last := f.object(f.namespace, "ghost")
	last.SetFinalizers([]string{agenttest.OurFinalizer})
	f.agent.handleWorkload(w, kindwatch.Event{Type: kindwatch.Deleted, Kind: kind, Object: last})
	f.Within("the object is released", func() error {
		hub, err := f.get(f.hub, f.target, "ghost")
		if err == nil && hub.GetAnnotations()[fleetv1alpha1.ReleasedFromAnnotation] == "" {
			err = errors.New("it is not")
		}
		return err
	})
}
