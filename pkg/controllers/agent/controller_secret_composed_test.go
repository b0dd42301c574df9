// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
)

// compose composes a Secret as Crossplane does: it is labelled with the composite's name, and the composite controls
// it.
func (f *fixture) compose(name string, owner *unstructured.Unstructured, password string, edit ...func(*corev1.Secret)) *corev1.Secret {
	f.T.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Target, Name: name, Labels: map[string]string{"crossplane.io/composite": "x"}},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{"password": []byte(password)},
	}
	if owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
	}
	for _, e := range edit {
		e(s)
	}
	f.Create(f.Hub, s)
	return s
}

// composed records composed resources as Crossplane does: in references and in a condition.
func (f *fixture) composed(hub *unstructured.Unstructured, names ...string) {
	f.T.Helper()
	f.Edit(f.Hub, hub, func() {
		refs := []any{}
		for _, name := range names {
			refs = append(refs, map[string]any{"apiVersion": "v1", "kind": "Secret", "name": name})
		}
		_ = unstructured.SetNestedSlice(hub.Object, refs, "spec", "crossplane", "resourceRefs")
	})
	f.Within("Crossplane sets the status", func() error {
		if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(hub), hub); err != nil {
			return err
		}
		hub.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "lastTransitionTime": "2026-01-02T03:04:05Z"},
		}}
		return f.Hub.Status().Update(f.Ctx, hub)
	})
}

func TestSynchronizationPullBringsTheSecretsOfAComposite(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	local, hub := f.CreateCache("cache")
	opaque := f.compose("cache-creds", hub, "one")
	f.compose("cache-tls", hub, "tls", func(s *corev1.Secret) { s.Type = "example.org/tls" })
	f.composed(hub, "cache-creds", "cache-tls")
	for name, password := range map[string]string{"cache-creds": "one", "cache-tls": "tls"} {
		f.Within("every Secret arrives", f.SecretIs(name, password))
	}
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	got := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "cache-tls"}}
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if got.Type != "example.org/tls" || !metav1.IsControlledBy(got, local) || got.Labels[fleetv1alpha1.ManagedByLabel] != index.ManagedByValue || got.Labels["crossplane.io/composite"] != "" {
		t.Errorf("want the type of the hub's, owned by the composite here, and nothing else of the hub's metadata, got %s %v", got.Type, got.ObjectMeta)
	}

	f.Edit(f.Hub, opaque, func() { opaque.Data["password"] = []byte("two") })
	f.Within("a rotated value follows", f.SecretIs("cache-creds", "two"))
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "cache-creds"}}
	f.Edit(f.Workload, s, func() { s.Data["password"] = []byte("mine") })
	f.Within("a tampered value is put back", f.SecretIs("cache-creds", "two"))
	f.Edit(f.Workload, s, func() { s.Data["password"], s.Immutable = []byte("mine"), new(true) })
	f.Within("even if it was made immutable", f.SecretIs("cache-creds", "two"))
	if err := f.Workload.Delete(f.Ctx, s); err != nil {
		t.Fatal(err)
	}
	f.Within("a deleted Secret comes back", f.SecretIs("cache-creds", "two"))

	if err := f.Hub.Delete(f.Ctx, opaque); err != nil {
		t.Fatal(err)
	}
	f.compose("cache-creds", hub, "three", func(s *corev1.Secret) { s.Type = "example.org/other" })
	f.Within("one that is composed again with another type follows", f.SecretIs("cache-creds", "three"))
}

func TestSecretsThatTheCompositeDoesNotControlAreNotCopied(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	other := f.NewCache(f.Target, "other")
	other.Object["spec"] = map[string]any{"memoryMB": int64(1)}
	f.Create(f.Hub, other)
	local, hub := f.CreateCache("cache", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "others"}}, "spec", "crossplane", "resourceRefs")
	})
	f.compose("others", other, "secret")
	f.compose("uncontrolled", nil, "secret")
	f.compose("owned", nil, "secret", func(s *corev1.Secret) {
		ref := *metav1.NewControllerRef(hub, hub.GroupVersionKind())
		ref.Controller = nil
		s.OwnerReferences = []metav1.OwnerReference{ref}
	})
	f.compose("forged", hub, "secret", func(s *corev1.Secret) { s.OwnerReferences[0].UID = local.GetUID() })
	f.compose("unlabelled", hub, "secret", func(s *corev1.Secret) { s.Labels = nil })
	f.compose("token", hub, "secret", func(s *corev1.Secret) {
		s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
	})
	f.compose("ours", hub, "one")
	f.composed(hub, "ours", "others", "uncontrolled", "owned", "forged", "unlabelled", "token")
	f.Within("the composite's own arrives", f.SecretIs("ours", "one"))
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	for _, name := range []string{"others", "uncontrolled", "owned", "forged", "unlabelled", "token"} {
		if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
			t.Errorf("want no Secret %q in the workload cluster, got %v", name, err)
		}
		if got := f.HubRequests.Filter("GET", "/secrets/"+name); len(got) != 0 {
			t.Errorf("want the Secret %q never to be read, got %v", name, got)
		}
	}
}

func TestSecretThatIsNotComposedAnyMoreOrLabelledGoes(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	_, hub := f.CreateCache("cache")
	first := f.compose("first", hub, "one")
	f.compose("second", hub, "two")
	f.composed(hub, "first", "second")
	f.Within("the first arrives", f.SecretIs("first", "one"))
	f.Within("the second arrives", f.SecretIs("second", "two"))
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)

	if err := f.Hub.Delete(f.Ctx, first); err != nil {
		t.Fatal(err)
	}
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSecretMissing)
	if err := f.SecretIs("first", "one")(); err != nil {
		t.Errorf("want the copy to be kept while the composite refers to the Secret: %v", err)
	}
	f.composed(hub, "second")
	f.Within("the copy goes when it does not any more", f.SecretIs("first", ""))
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)
	if err := f.SecretIs("second", "two")(); err != nil {
		t.Errorf("want the other to stay: %v", err)
	}

	// The author of a composition can have a Secret stay in the hub, and revise this in both directions.
	master := f.compose("master", hub, "secret", func(s *corev1.Secret) { s.Labels[fleetv1alpha1.DeliverLabel] = "false" })
	third := f.compose("third", hub, "three")
	f.composed(hub, "second", "third", "master")
	f.Within("what is not labelled arrives", f.SecretIs("third", "three"))
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()
	if err := f.SecretIs("master", "")(); err != nil {
		t.Errorf("want the one that is labelled to stay in the hub: %v", err)
	}
	if got := f.HubRequests.Filter("GET", "/secrets/master"); len(got) != 0 {
		t.Errorf("want the Secret never to be read, got %v", got)
	}
	f.Edit(f.Hub, third, func() { third.Labels[fleetv1alpha1.DeliverLabel] = "false" })
	f.Within("what is labelled goes", f.SecretIs("third", ""))
	f.Edit(f.Hub, master, func() { delete(master.Labels, fleetv1alpha1.DeliverLabel) })
	f.Within("what is not labelled any more arrives", f.SecretIs("master", "secret"))
}

func TestForeignSecretKeepsNoOtherComposedOneAway(t *testing.T) {
	t.Parallel()
	f := newCompositeFixture(t)
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "a"}, StringData: map[string]string{"password": "mine"}}
	f.Create(f.Workload, mine)
	_, hub := f.CreateCache("cache")
	f.compose("a", hub, "one")
	f.compose("b", hub, "two")
	f.composed(hub, "a", "b")
	f.Within("the other one arrives", f.SecretIs("b", "two"))
	f.WaitForCacheSynced("cache", fleetv1alpha1.ReasonSecretConflict)
	if err := f.SecretIs("a", "mine")(); err != nil {
		t.Errorf("want the other owner's Secret as it was: %v", err)
	}

	// A copy without an owner is overwritten.
	f.CreateOrphan("b", "c", false)
	next, hub := f.CreateCache("next")
	f.compose("c", hub, "three")
	f.composed(hub, "c")
	f.Within("the third one arrives", f.SecretIs("c", "three"))
	f.WaitForController(next, "c")
	f.WaitForCacheSynced("next", fleetv1alpha1.ReasonSynced)
}
