// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/prometheus/client_golang/prometheus"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// recorded waits until a claim records a hub object, by UID or by place.
func (f *fixture) recorded(name string, hub *unstructured.Unstructured) {
	f.T.Helper()
	f.Within("claim "+name+" records its object in the hub", func() error {
		claim, err := f.GetClaim(f.Workload, f.Namespace, name)
		if err != nil {
			return err
		}
		if !ownership.Records(claim, hub) {
			return fmt.Errorf("it records %q, and not %q", claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation], ownership.RecordFor(claim, hub))
		}
		return nil
	})
}

// consent is the owner's consent to replace the object that the claim records.
func (f *fixture) consent(name string) string {
	f.T.Helper()
	claim := f.MustGetClaim(name)
	was, recorded := ownership.GetRecord(claim)
	if !recorded {
		f.T.Fatalf("claim %s records nothing", name)
	}
	return was.Consent(claim)
}

// settledClaim creates a claim whose object in the hub is ready and recorded.
func (f *fixture) settledClaim(name string) *unstructured.Unstructured {
	f.T.Helper()
	f.CreateClaim(name)
	hub := f.WaitForPushed(name)
	f.MarkReady(name, "a")
	f.recorded(name, hub)
	f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	return hub
}

// Applying empty annotations owns their emptiness, and no other apply may add one. A claim that was copied with its
// record gets its own object.
func TestClaimWhoseAnnotationsWereAppliedEmptyRecordsItsObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	u := f.NewClaim(f.Namespace, "db")
	u.Object["spec"] = map[string]any{"version": "5.7", "storageGB": int64(20)}
	_ = unstructured.SetNestedMap(u.Object, map[string]any{}, "metadata", "annotations")
	if err := f.Workload.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	hub := f.WaitForPushed("db")
	f.MarkReady("db", "a")
	f.recorded("db", hub)
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

	original := f.MustGetClaim("db")
	f.CreateClaim("copy", func(u *unstructured.Unstructured) { u.SetAnnotations(original.GetAnnotations()) })
	hub = f.WaitForPushed("copy")
	f.MarkReady("copy", "a")
	f.recorded("copy", hub)
	f.WaitForSynced("copy", fleetv1alpha1.ReasonSynced)
}

// createStray creates an object that names the source of a claim, in a namespace of the hub where the claim's object is
// not. It has a status, a composite resource and a password of its own.
func (f *fixture) createStray(name string) *unstructured.Unstructured {
	f.T.Helper()
	stray := f.NewClaim(f.CreateHubNamespace(f.Class+"-attacker"), name)
	stray.SetAnnotations(f.source().Annotations())
	stray.Object["spec"] = map[string]any{
		"version": "8", "storageGB": int64(5), "resourceRef": map[string]any{"name": "attackers"}, "writeConnectionSecretToRef": map[string]any{"name": "attackers"},
	}
	f.Create(f.Hub, stray)
	f.inHub(stray)
	f.CreateConnectionSecret("attackers", stray, "attackers")
	stray.Object["status"] = map[string]any{"address": "attackers", "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Attack", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	if err := f.Hub.Status().Update(f.Ctx, stray); err != nil {
		f.T.Fatal(err)
	}
	return stray
}

// nothingFrom checks that nothing of a stray is in its claim's namespace, and that the stray is as it was.
func (f *fixture) nothingFrom(stray *unstructured.Unstructured) {
	f.T.Helper()
	f.WaitForIdle()
	claim, err := f.GetClaim(f.Workload, f.Namespace, stray.GetName())
	if client.IgnoreNotFound(err) != nil {
		f.T.Fatal(err)
	}
	content, err := json.Marshal(claim)
	if err != nil {
		f.T.Fatal(err)
	}
	for _, trace := range []string{"attacker", string(stray.GetUID())} {
		if strings.Contains(string(content), trace) {
			f.T.Errorf("want nothing of the stray in the claim, got %s", content)
		}
	}
	secrets := &corev1.SecretList{}
	if err := f.Workload.List(f.Ctx, secrets, client.InNamespace(f.Namespace)); err != nil {
		f.T.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if string(secret.Data["password"]) == "attackers" {
			f.T.Errorf("want no password of the stray, got it in %q", secret.Name)
		}
	}
	if now, err := f.GetClaim(f.Hub, stray.GetNamespace(), stray.GetName()); err != nil || now.GetUID() != stray.GetUID() || now.GetDeletionTimestamp() != nil {
		f.T.Errorf("want the stray to stay, got %v (%v)", now.Object, err)
	}
}

// TestTenancyStrayHarmsNoClaim has an object in another namespace of the hub name the source of a claim: before the
// claim is there, after its object was lost, and as a copy of its object. It does not block the claim, nothing of it
// flows down or is recorded, and it is not deleted with the claim. What is decided at other times of a claim's life is
// in package plan.
func TestTenancyStrayHarmsNoClaim(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	stray := f.createStray("db")
	f.CreateClaim("db", agenttest.WithSecret("creds"))
	hub := f.WaitForPushed("db")
	f.MarkReady("db", "a")
	f.recorded("db", hub)
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.nothingFrom(stray)

	f.DeleteInHub(hub)
	f.WaitForSynced("db", fleetv1alpha1.ReasonHubObjectDeleted)
	f.TouchClaim("db")
	f.nothingFrom(stray)
	f.WaitForSynced("db", fleetv1alpha1.ReasonHubObjectDeleted)
	f.AnnotateClaim("db", fleetv1alpha1.RecreateAnnotation, f.consent("db"))
	hub = f.WaitForRecreated("db", hub.GetUID())
	f.MarkReady("db", "b")
	f.recorded("db", hub)

	f.Edit(f.Hub, stray, func() { stray.SetAnnotations(hub.GetAnnotations()) })
	f.inHub(stray)
	f.MarkReady("db", "c")
	f.Within("the status of the claim's object comes back", func() error {
		claim, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if address, _, _ := unstructured.NestedString(claim.Object, "status", "address"); err != nil || address != "c" {
			return fmt.Errorf("the address is %q: %w", address, err)
		}
		return nil
	})
	f.nothingFrom(stray)
	if err := f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
	f.nothingFrom(stray)
}

// TestClaimRecordsTheUIDWhereNothingElseSaysThatThereWasAnObject has a Crossplane that shows no conditions: a lost
// object is still reported, by an event as well, and nothing is created in its place.
func TestClaimRecordsTheUIDWhereNothingElseSaysThatThereWasAnObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db")
	hub := f.WaitForPushed("db")
	f.Within("the claim records the UID", func() error {
		claim, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err != nil {
			return err
		}
		if was, ok := ownership.GetRecord(claim); !ok || was.UID != hub.GetUID() {
			return fmt.Errorf("it records %q", claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation])
		}
		return nil
	})
	f.WaitForIdle()
	f.DeleteInHub(hub)
	f.WaitForMessage("db", fleetv1alpha1.ReasonHubObjectDeleted, string(hub.GetUID()), fleetv1alpha1.RecreateAnnotation)
	f.Within("the loss is reported by an event", func() error {
		events := &eventsv1.EventList{}
		if err := f.Workload.List(f.Ctx, events, client.InNamespace(f.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == fleetv1alpha1.ReasonHubObjectDeleted && e.Type == "Warning" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	f.WaitForIdle()
	f.MustNotExist(f.Target, "db")
}

// TestConditionsOfBeforeAreNoLoss: a claim's cluster left and came back. The claim's conditions are about a former
// object, and say nothing about the one about to be created. That the hub refuses this one for a while is no loss.
func TestConditionsOfBeforeAreNoLoss(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hub := f.settledClaim("db")
	f.stopAgent()
	claim := f.MustGetClaim("db")
	f.Edit(f.Workload, claim, func() {
		ownership.WithoutRecord(claim)
		claim.SetFinalizers(nil)
	})
	f.DeleteInHub(hub)
	f.LimitInHub(10)
	f.registry = prometheus.NewRegistry()
	f.start()
	f.WaitForSynced("db", fleetv1alpha1.ReasonRejected)
	f.TouchClaim("db")
	f.WaitForIdle()
	f.WaitForSynced("db", fleetv1alpha1.ReasonRejected)

	claim = f.MustGetClaim("db")
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(5), "spec", "storageGB") })
	again := f.WaitForRecreated("db", hub.GetUID())
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.MarkReady("db", "b")
	f.recorded("db", again)
}
