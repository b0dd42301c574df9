// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func orphaning(c *fleetv1alpha1.EnrollmentClass) {
	c.Spec.Agent.DeletionPolicy = fleetv1alpha1.DeletionPolicyOrphan
}

// TestOrphanedClaimLeavesItsObjectWithoutAnOwner: whose object stays is decided in package plan.
func TestOrphanedClaimLeavesItsObjectWithoutAnOwner(t *testing.T) {
	t.Parallel()
	f := newFixture(t, orphaning)
	tagged := func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"x"}, "spec", "tags")
	}
	claim := f.CreateClaim("db", agenttest.WithDeletionPolicy("Delete"), tagged)
	before := f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForIdle()

	hub, err := f.GetClaim(f.Hub, f.Target, "db")
	if err != nil || hub.GetUID() != before.GetUID() || hub.GetDeletionTimestamp() != nil {
		t.Fatalf("want the object to stay, got %v (%v)", hub.Object, err)
	}
	if diff := cmp.Diff(before.Object["spec"], hub.Object["spec"]); diff != "" {
		t.Errorf("want its spec as it was (-want +got):\n%s", diff)
	}
	// Its namespace stays recorded, so that another one of that name does not take it back.
	want := ownership.GetResidence(before).Annotations()
	want[fleetv1alpha1.ReleasedFromAnnotation] = f.source().String()
	if diff := cmp.Diff(want, hub.GetAnnotations()); diff != "" {
		t.Errorf("want it to name no source but the one that it had (-want +got):\n%s", diff)
	}
	for _, e := range hub.GetManagedFields() {
		if e.Manager == ownership.FieldManager(f.Identifier) {
			t.Errorf("want our field manager to be gone, got %v", e)
		}
	}

	// A released object is not free, not even for its former owner, unless the owner asks for it.
	claim = f.CreateClaim("db", tagged)
	f.WaitForSynced("db", fleetv1alpha1.ReasonConflict)
	f.AnnotateClaim("db", fleetv1alpha1.AdoptAnnotation, "true")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	hub, err = f.GetClaim(f.Hub, f.Target, "db")
	if err != nil || hub.GetUID() != before.GetUID() || ownership.Classify(true, hub, f.source()) != ownership.Ours {
		t.Fatalf("want the very object to be ours again, got %v (%v)", hub.Object, err)
	}
	// If our former manager had kept its fields, they could no longer be removed.
	f.Edit(f.Workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "tags") })
	f.Within("a removed field goes", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if tags, there, _ := unstructured.NestedSlice(hub.Object, "spec", "tags"); err != nil || there {
			return fmt.Errorf("tags are %v: %w", tags, errors.Join(err, errors.New("not gone")))
		}
		return nil
	})
}

// TestClaimThatVanishesWhileItIsLookedForIsNotForgotten: a claim vanishes just after a reconcile has found neither the
// claim nor its last state.
func TestClaimThatVanishesWhileItIsLookedForIsNotForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kind, _ := w.KindFor(f.ClaimCRD().Name)
	ghost := f.NewClaim(f.Namespace, "ghost")
	req := w.Request(kind, client.ObjectKeyFromObject(ghost))

	locked, release := make(chan struct{}), make(chan struct{})
	unlock := sync.OnceFunc(func() { close(release) })
	defer unlock()
	go f.agent.workloads.IfCurrent(w.Name, w, func() { // Forgetting a claim blocks here.
		close(locked)
		<-release
	})
	<-locked
	looked := make(chan error)
	go func() {
		_, _, err := f.agent.requirements.getClaim(w, req)
		looked <- err
	}()
	f.Within("the claim is found not to be there", func() error {
		stacks := make([]byte, 8<<20)
		if !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "(*requirementReconciler).getClaim") {
			return errors.New("it was not looked for yet")
		}
		if !strings.Contains(string(stacks), "(*requirementReconciler).forgetAllButVanished") {
			return errors.New("it is being looked for")
		}
		return nil
	})
	f.agent.requirements.vanish(req, ghost)
	unlock()
	if err := <-looked; !condition.IsPending(err) {
		t.Fatalf("want nothing to do, got %v", err)
	}
	if f.agent.requirements.ledger.Entry(req).Vanished == nil {
		t.Error("want the last state of the claim to be kept until its object in the hub is looked for")
	}
}
