// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

func TestFieldsThatCrossplaneFillsInAreNeverFoughtOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db")
	f.WaitForPushed("db")
	f.MarkReady("db", "a")
	f.LateInitialize("db", map[string]string{"resourceRef": "xdb-1", "compositionRef": "c"})
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"resourceRef": "xdb-1", "compositionRef": "c"})
	hash := func() string {
		u, err := f.GetClaim(f.Hub, f.Target, "db")
		if err != nil {
			t.Fatal(err)
		}
		return u.GetAnnotations()[ownership.AppliedHashAnnotation]
	}
	before := hash()

	f.LateInitialize("db", map[string]string{"compositionRef": "d"})
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"compositionRef": "d"})
	f.WaitForIdle()
	if after := hash(); after != before {
		t.Error("want what Crossplane filled in never to be pushed as the user's")
	}

	// The user sets one of the fields: it is theirs, and is pushed; the hub's object follows, and later changes do not
	// come back.
	f.Edit(f.Workload, claim, func() {
		_ = unstructured.SetNestedField(claim.Object, "mine", "spec", "compositionRef", "name")
	})
	f.WaitForSpec(f.Hub, f.Target, "db", map[string]string{"compositionRef": "mine"})
	f.LateInitialize("db", map[string]string{"compositionRef": "enforced"})
	f.WaitForIdle()
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"compositionRef": "mine", "resourceRef": "xdb-1"})
	f.WaitForSpec(f.Hub, f.Target, "db", map[string]string{"compositionRef": "enforced"})

	// The user removes it: the hub's value is shown again.
	f.Edit(f.Workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "compositionRef") })
	f.LateInitialize("db", map[string]string{"compositionRef": "e"})
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"compositionRef": "e"})

	// The user's tool applies the same value. It is indistinguishable from ours until it would have to change.
	same := f.NewClaim(f.Namespace, "db")
	_ = unstructured.SetNestedField(same.Object, "e", "spec", "compositionRef", "name")
	if err := f.Workload.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(same), client.FieldOwner("gitops")); err != nil {
		t.Fatal(err)
	}
	f.WaitForIdle()
	f.LateInitialize("db", map[string]string{"compositionRef": "g"})
	f.WaitForSpec(f.Hub, f.Target, "db", map[string]string{"compositionRef": "e"})
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"compositionRef": "e"})
	same = f.NewClaim(f.Namespace, "db")
	_ = unstructured.SetNestedField(same.Object, "e2", "spec", "compositionRef", "name")
	if err := f.Workload.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(same), client.FieldOwner("gitops")); err != nil {
		t.Errorf("want the user's tool never to be in conflict with what was his, got %v", err)
	}
	f.WaitForSpec(f.Hub, f.Target, "db", map[string]string{"compositionRef": "e2"})
}

// Finding that a field is the user's must push it: the watch does not requeue a claim for Masthead's own write, if its
// response was here first.
func TestFieldThatTurnsOutToBeTheUsersIsPushedAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.CreateClaim("db")
	f.WaitForPushed("db")
	f.LateInitialize("db", map[string]string{"compositionRef": "e"})
	f.WaitForSpec(f.Workload, f.Namespace, "db", map[string]string{"compositionRef": "e"})
	f.WaitForIdle()
	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kind, _ := w.KindFor(f.ClaimCRD().Name)
	// A claim that is gone meanwhile is not made by its fields.
	gone := f.NewClaim(f.Namespace, "gone")
	gone.SetUID("0d8d7c1c-5b8f-4a0e-8f57-3b1f0f6c7a11")
	of := &downstream.Scope{Workload: w, Facts: plan.Facts{ObjectRequest: w.Request(kind, client.ObjectKeyFromObject(gone)), Claim: gone}}
	err := f.agent.requirements.reports.Apply(f.Ctx, of, fleetv1alpha1.LateInitFieldManager, map[string]any{"compositionRef": map[string]any{"name": "c"}})
	if !apierrors.IsConflict(err) {
		t.Errorf("want it to be refused, got %v", err)
	}
	if _, err := f.GetClaim(f.Workload, f.Namespace, "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("want no claim, got %v", err)
	}

	hub, err := f.GetClaim(f.Hub, f.Target, "db")
	if err != nil {
		t.Fatal(err)
	}
	f.stopAgent()

	same := f.NewClaim(f.Namespace, "db")
	_ = unstructured.SetNestedField(same.Object, "e", "spec", "compositionRef", "name")
	if err := f.Workload.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(same), client.FieldOwner("gitops")); err != nil {
		t.Fatal(err)
	}
	claim, err := f.GetClaim(f.Workload, f.Namespace, "db")
	if err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(hub.Object, "g", "spec", "compositionRef", "name")
	s := &downstream.Scope{Workload: w, Facts: plan.Facts{ObjectRequest: w.Request(kind, client.ObjectKeyFromObject(claim)), Claim: claim}}
	err = f.agent.requirements.reports.Initialise(f.Ctx, s, hub, downstream.DecideDown(down(f.agent.requirements, s, hub)).Late)
	if result, failed := condition.Result(err); failed != nil || !condition.IsPending(err) || result.RequeueAfter == 0 {
		t.Errorf("want the claim to be looked at again, got %v, %s", err, result.RequeueAfter)
	}
	if spec, _ := propagation.UsersSpec(s.Latest(), s.Form); spec["compositionRef"] == nil {
		t.Errorf("want the field to be the user's now, got %v", spec)
	}
}
