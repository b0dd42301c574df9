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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/prometheus/client_golang/prometheus"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// recorded waits until a claim records a hub object, by UID or by place.
func (f *fixture) recorded(name string, hub *unstructured.Unstructured) {
	f.T.Helper()
	f.Within("claim "+name+" records its object in the hub", func() error {
		claim, err := f.get(f.workload, f.namespace, name)
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
	claim := f.mustGet(name)
	was, recorded := ownership.GetRecord(claim)
	if !recorded {
		f.T.Fatalf("claim %s records nothing", name)
	}
	return was.Consent(claim)
}

// settledClaim creates a claim whose object in the hub is ready and recorded.
func (f *fixture) settledClaim(name string) *unstructured.Unstructured {
	f.T.Helper()
	f.claim(name)
	hub := f.pushed(name)
	f.ready(name, "a")
	f.recorded(name, hub)
	f.synced(name, fleetv1alpha1.ReasonSynced)
	return hub
}

// recreatedInHub waits until the hub has a new object of a claim.
func (f *fixture) recreatedInHub(name string, before types.UID) *unstructured.Unstructured {
	f.T.Helper()
	var now *unstructured.Unstructured
	f.Within("the object of "+name+" is created again", func() (err error) {
		if now, err = f.get(f.hub, f.target, name); err == nil && now.GetUID() == before {
			err = errors.New("it is the old one")
		}
		return err
	})
	return now
}

func (f *fixture) deleteInHub(obj *unstructured.Unstructured) {
	f.T.Helper()
	if err := f.hub.Delete(f.Ctx, obj); err != nil {
		f.T.Fatal(err)
	}
}

func (f *fixture) annotateClaim(name, key, value string) {
	f.T.Helper()
	u := f.object(f.namespace, name)
	f.Edit(f.workload, u, func() {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		u.SetAnnotations(annotations)
	})
}

// Applying empty annotations owns their emptiness, and no other apply may add one. A claim that was copied with its
// record gets its own object.
func TestClaimWhoseAnnotationsWereAppliedEmptyRecordsItsObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.served()
	u := f.object(f.namespace, "db")
	u.Object["spec"] = map[string]any{"version": "5.7", "storageGB": int64(20)}
	_ = unstructured.SetNestedMap(u.Object, map[string]any{}, "metadata", "annotations")
	if err := f.workload.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	hub := f.pushed("db")
	f.ready("db", "a")
	f.recorded("db", hub)
	f.synced("db", fleetv1alpha1.ReasonSynced)

	original := f.mustGet("db")
	f.claim("copy", func(u *unstructured.Unstructured) { u.SetAnnotations(original.GetAnnotations()) })
	hub = f.pushed("copy")
	f.ready("copy", "a")
	f.recorded("copy", hub)
	f.synced("copy", fleetv1alpha1.ReasonSynced)
}

// createStray creates an object that names the source of a claim, in a namespace of the hub where the claim's object is
// not. It has a status, a composite resource and a password of its own.
func (f *fixture) createStray(name string) *unstructured.Unstructured {
	f.T.Helper()
	stray := f.object(f.hubNamespace(f.class+"-attacker"), name)
	stray.SetAnnotations(f.source().Annotations())
	stray.Object["spec"] = map[string]any{
		"version": "8", "storageGB": int64(5), "resourceRef": map[string]any{"name": "attackers"}, "writeConnectionSecretToRef": map[string]any{"name": "attackers"},
	}
	f.Create(f.hub, stray)
	f.inHub(stray)
	f.connectionSecret("attackers", stray, "attackers")
	stray.Object["status"] = map[string]any{"address": "attackers", "conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Attack", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}}}
	if err := f.hub.Status().Update(f.Ctx, stray); err != nil {
		f.T.Fatal(err)
	}
	return stray
}

// nothingFrom checks that nothing of a stray is in its claim's namespace, and that the stray is as it was.
func (f *fixture) nothingFrom(stray *unstructured.Unstructured) {
	f.T.Helper()
	f.settled()
	claim, err := f.get(f.workload, f.namespace, stray.GetName())
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
	if err := f.workload.List(f.Ctx, secrets, client.InNamespace(f.namespace)); err != nil {
		f.T.Fatal(err)
	}
	for _, secret := range secrets.Items {
		if string(secret.Data["password"]) == "attackers" {
			f.T.Errorf("want no password of the stray, got it in %q", secret.Name)
		}
	}
	if now, err := f.get(f.hub, stray.GetNamespace(), stray.GetName()); err != nil || now.GetUID() != stray.GetUID() || now.GetDeletionTimestamp() != nil {
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
	f.served()
	stray := f.createStray("db")
	f.claim("db", withSecret("creds"))
	hub := f.pushed("db")
	f.ready("db", "a")
	f.recorded("db", hub)
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.nothingFrom(stray)

	f.deleteInHub(hub)
	f.synced("db", fleetv1alpha1.ReasonHubObjectDeleted)
	f.poke("db")
	f.nothingFrom(stray)
	f.synced("db", fleetv1alpha1.ReasonHubObjectDeleted)
	f.annotateClaim("db", fleetv1alpha1.RecreateAnnotation, f.consent("db"))
	hub = f.recreatedInHub("db", hub.GetUID())
	f.ready("db", "b")
	f.recorded("db", hub)

	f.Edit(f.hub, stray, func() { stray.SetAnnotations(hub.GetAnnotations()) })
	f.inHub(stray)
	f.ready("db", "c")
	f.Within("the status of the claim's object comes back", func() error {
		claim, err := f.get(f.workload, f.namespace, "db")
		if address, _, _ := unstructured.NestedString(claim.Object, "status", "address"); err != nil || address != "c" {
			return fmt.Errorf("the address is %q: %w", address, err)
		}
		return nil
	})
	f.nothingFrom(stray)
	if err := f.workload.Delete(f.Ctx, f.object(f.namespace, "db")); err != nil {
		t.Fatal(err)
	}
	f.gone(f.workload, f.namespace, "db")
	f.gone(f.hub, f.target, "db")
	f.nothingFrom(stray)
}

// TestClaimRecordsTheUIDWhereNothingElseSaysThatThereWasAnObject has a Crossplane that shows no conditions: a lost
// object is still reported, by an event as well, and nothing is created in its place.
func TestClaimRecordsTheUIDWhereNothingElseSaysThatThereWasAnObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.claim("db")
	hub := f.pushed("db")
	f.Within("the claim records the UID", func() error {
		claim, err := f.get(f.workload, f.namespace, "db")
		if err != nil {
			return err
		}
		if was, ok := ownership.GetRecord(claim); !ok || was.UID != hub.GetUID() {
			return fmt.Errorf("it records %q", claim.GetAnnotations()[fleetv1alpha1.HubObjectAnnotation])
		}
		return nil
	})
	f.settled()
	f.deleteInHub(hub)
	f.says("db", fleetv1alpha1.ReasonHubObjectDeleted, string(hub.GetUID()), fleetv1alpha1.RecreateAnnotation)
	f.Within("the loss is reported by an event", func() error {
		events := &eventsv1.EventList{}
		if err := f.workload.List(f.Ctx, events, client.InNamespace(f.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == fleetv1alpha1.ReasonHubObjectDeleted && e.Type == "Warning" {
				return nil
			}
		}
		return errors.New("there is none")
	})
	f.settled()
	f.notIn(f.target, "db")
}

// TestConditionsOfBeforeAreNoLoss: a claim's cluster left and came back. The claim's conditions are about a former
// object, and say nothing about the one about to be created. That the hub refuses this one for a while is no loss.
func TestConditionsOfBeforeAreNoLoss(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hub := f.settledClaim("db")
	f.stopAgent()
	claim := f.mustGet("db")
	f.Edit(f.workload, claim, func() {
		ownership.WithoutRecord(claim)
		claim.SetFinalizers(nil)
	})
	f.deleteInHub(hub)
	f.limitInHub(10)
	f.registry = prometheus.NewRegistry()
	f.start()
	f.synced("db", fleetv1alpha1.ReasonRejected)
	f.poke("db")
	f.settled()
	f.synced("db", fleetv1alpha1.ReasonRejected)

	claim = f.mustGet("db")
	f.Edit(f.workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(5), "spec", "storageGB") })
	again := f.recreatedInHub("db", hub.GetUID())
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.ready("db", "b")
	f.recorded("db", again)
}
