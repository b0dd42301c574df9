// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"slices"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
)

// unpause resumes a claim.
func (f *fixture) unpause(name string) {
	f.T.Helper()
	u := f.NewClaim(f.Namespace, name)
	f.Edit(f.Workload, u, func() {
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", fleetv1alpha1.PausedAnnotation)
	})
}

// inHubAsIs checks that a hub object exists and is not being deleted, and returns it.
func (f *fixture) inHubAsIs(name string) *unstructured.Unstructured {
	f.T.Helper()
	hub, err := f.GetClaim(f.Hub, f.Target, name)
	if err != nil || hub.GetDeletionTimestamp() != nil {
		f.T.Fatalf("want %s to be left alone in the hub, got %v (%v)", name, hub.Object, err)
	}
	return hub
}

func TestPausedClaimIsCarriedWhenItIsUnpaused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim, _, secret := f.CreateClaimWithCopiedSecret()
	f.PauseClaim("db")

	size := func(u *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, "spec", "storageGB")
		return n
	}
	address := func() string {
		s, _, _ := unstructured.NestedString(f.MustGetClaim("db").Object, "status", "address")
		return s
	}
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(30), "spec", "storageGB") })
	f.MarkReady("db", "b")
	f.Edit(f.Hub, secret, func() { secret.Data["password"] = []byte("two") })
	nothing := func() {
		t.Helper()
		f.lookedAt(1)
		f.WaitForIdle()
		f.WaitForMessage("db", fleetv1alpha1.ReasonReconcilePaused)
		hub := f.inHubAsIs("db")
		if _, travelled := hub.GetAnnotations()[fleetv1alpha1.PausedAnnotation]; travelled || size(hub) != 20 {
			t.Errorf("want nothing to be carried to the hub, got %v", hub.Object)
		}
		if err := f.SecretIs("db-conn", "one")(); err != nil || address() != "a" {
			t.Errorf("want nothing to come back, got the address %q (%v)", address(), err)
		}
		if !agenttest.HasOurFinalizer(f.MustGetClaim("db")) {
			t.Error("want the claim to keep its finalizer")
		}
	}
	nothing()
	f.restart()
	nothing()

	f.unpause("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("what was changed meanwhile is carried", func() error {
		if n := size(f.inHubAsIs("db")); n != 30 || address() != "b" {
			return errors.New("it is not")
		}
		return f.SecretIs("db-conn", "two")()
	})
	f.Within("a pause is an event like any other", func() error {
		events := &eventsv1.EventList{}
		if err := f.Workload.List(f.Ctx, events, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Type+" "+e.Reason == "Normal "+fleetv1alpha1.ReasonReconcilePaused
		}) {
			return errors.New("there is none")
		}
		return nil
	})
}
