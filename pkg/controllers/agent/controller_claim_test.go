// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestClaimIsPushedAndStatusComesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaim("db", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"team": "a", "crossplane.io/claim-name": "forged"})
		u.SetAnnotations(map[string]string{
			"example.org/note": "mine", "crossplane.io/external-name": "another-clusters",
			fleetv1alpha1.SourceUIDAnnotation: "forged", fleetv1alpha1.SourceNamespaceAnnotation: "forged",
		})
		_ = unstructured.SetNestedField(u.Object, "another-clusters", "spec", "resourceRef", "name")
	})

	hub := f.WaitForPushed("db")
	wantSpec := map[string]any{"version": "5.7", "storageGB": int64(20), "compositeDeletePolicy": "Background"}
	if diff := cmp.Diff(wantSpec, hub.Object["spec"]); diff != "" {
		t.Errorf("the spec in the hub is not what may travel (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"team": "a"}, hub.GetLabels()); diff != "" {
		t.Errorf("the labels in the hub are not what may travel (-want +got):\n%s", diff)
	}
	annotations := hub.GetAnnotations()
	delete(annotations, ownership.AppliedHashAnnotation)
	home := &corev1.Namespace{}
	if err := f.Workload.Get(f.Ctx, types.NamespacedName{Name: f.Namespace}, home); err != nil {
		t.Fatal(err)
	}
	wantAnnotations := map[string]string{
		fleetv1alpha1.SourceNamespaceUIDAnnotation: string(home.UID), fleetv1alpha1.SourceClusterUIDAnnotation: f.KubeSystemUID(),
		fleetv1alpha1.SourceClaimUIDAnnotation:  string(f.MustGetClaim("db").GetUID()),
		fleetv1alpha1.CreatedByAnnotation:       "manager",
		"example.org/note":                      "mine",
		fleetv1alpha1.SourceUIDAnnotation:       f.Identifier,
		fleetv1alpha1.SourceNamespaceAnnotation: f.Namespace,
	}
	if diff := cmp.Diff(wantAnnotations, annotations); diff != "" {
		t.Errorf("the annotations in the hub are not what may travel and the source (-want +got):\n%s", diff)
	}

	f.MarkReady("db", "db.example.org")
	claim := f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if got, _, _ := unstructured.NestedString(claim.Object, "status", "address"); got != "db.example.org" {
		f.Within("the status comes back", func() error {
			u, err := f.GetClaim(f.Workload, f.Namespace, "db")
			if got, _, _ := unstructured.NestedString(u.Object, "status", "address"); err != nil || got != "db.example.org" {
				return fmt.Errorf("address is %q: %w", got, errors.Join(err, errors.New("not there")))
			}
			claim = u
			return nil
		})
	}
	if !condition.IsTrue(claim, "Ready") {
		t.Errorf("want the hub's condition Ready, got %v", claim.Object["status"])
	}
	if !controllerutil.ContainsFinalizer(claim, agenttest.OurFinalizer) {
		t.Errorf("want the finalizer, got %v", claim.GetFinalizers())
	}
}

func TestSpecChangesAndRemovalsTravel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"team": "a", "stage": "dev"})
		_ = unstructured.SetNestedStringSlice(u.Object, []string{"x", "y"}, "spec", "tags")
	})
	f.WaitForPushed("db")
	// Crossplane fills in its own fields with an update.
	hub := f.NewClaim(f.Target, "db")
	f.Edit(f.Hub, hub, func() {
		_ = unstructured.SetNestedField(hub.Object, "c", "spec", "compositionRef", "name")
		_ = unstructured.SetNestedField(hub.Object, "xdb-1", "spec", "resourceRef", "name")
	})

	f.Edit(f.Workload, claim, func() {
		claim.SetLabels(map[string]string{"team": "b"})
		unstructured.RemoveNestedField(claim.Object, "spec", "tags")
		_ = unstructured.SetNestedField(claim.Object, int64(40), "spec", "storageGB")
	})
	want := map[string]any{
		"version": "5.7", "storageGB": int64(40), "compositeDeletePolicy": "Background",
		"compositionRef": map[string]any{"name": "c"}, "resourceRef": map[string]any{"name": "xdb-1"},
	}
	f.Within("the change travels", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, hub.Object["spec"]); diff != "" {
			return fmt.Errorf("spec (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]string{"team": "b"}, hub.GetLabels()); diff != "" {
			return fmt.Errorf("labels (-want +got):\n%s", diff)
		}
		return nil
	})

	// A hub user's changes to the claim's fields are reverted; Crossplane's fields are not.
	f.Edit(f.Hub, hub, func() {
		_ = unstructured.SetNestedField(hub.Object, int64(1), "spec", "storageGB")
		_ = unstructured.SetNestedField(hub.Object, "Foreground", "spec", "compositeDeletePolicy")
	})
	f.Within("drift is put back", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "db")
		if got, _, _ := unstructured.NestedInt64(hub.Object, "spec", "storageGB"); err != nil || got != 40 {
			return fmt.Errorf("storageGB is %d: %w", got, errors.Join(err, errors.New("not put back")))
		}
		return nil
	})
}

// patient makes the agent wait for a claim's first status for the duration of a test.
func patient(o *Options) { o.FirstStatusPatience = time.Minute }

func TestClaimCostsThreeRequestsAndNothingWhenIdle(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.options = patient
	f.start()
	f.CreateClaim("first")
	f.WaitForPushed("first")
	f.MarkReady("first", "a")
	f.WaitForSynced("first", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()

	f.CreateClaim("db")
	f.WaitForPushed("db")
	f.MarkReady("db", "db.example.org")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()

	got := append(f.HubRequests.Filter(f.Group, "/mysqlinstances/db"), f.WorkloadRequests.Filter(f.Group, "/mysqlinstances/db")...)
	if len(got) != 3 {
		t.Errorf("want 3 requests for a claim and its status: the finalizer with the announcement, the apply, the status; got %d:\n%s", len(got), strings.Join(got, "\n"))
	}

	f.CreateClaim("filled")
	f.WaitForPushed("filled")
	f.LateInitialize("filled", map[string]string{"resourceRef": "xdb-1"})
	f.LateInitialize("filled", map[string]string{"compositionRef": "c"})
	f.MarkReady("filled", "db.example.org")
	f.WaitForSynced("filled", fleetv1alpha1.ReasonSynced)
	f.WaitForSpec(f.Workload, f.Namespace, "filled", map[string]string{"resourceRef": "xdb-1", "compositionRef": "c"})
	f.WaitForIdle()
	got = append(f.HubRequests.Filter(f.Group, "/mysqlinstances/filled"), f.WorkloadRequests.Filter(f.Group, "/mysqlinstances/filled")...)
	if len(got) != 4 {
		t.Errorf("want 4 requests: the finalizer, the apply, the fields that were filled in, the status; got %d:\n%s", len(got), strings.Join(got, "\n"))
	}

	before := len(f.HubRequests.Writes()) + len(f.WorkloadRequests.Writes())
	reads := len(f.HubRequests.Filter()) + len(f.WorkloadRequests.Filter())
	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	f.agent.enqueueClaims(w)
	f.agent.hub.EnqueueDefinitions(w)
	f.WaitForIdle()
	if after := len(f.HubRequests.Writes()) + len(f.WorkloadRequests.Writes()); after != before {
		t.Errorf("want no write when everything is looked at again, got %d", after-before)
	}
	if after := len(f.HubRequests.Filter()) + len(f.WorkloadRequests.Filter()); after != reads {
		t.Errorf("want no read either, got:\n%s", strings.Join(append(f.HubRequests.Filter(), f.WorkloadRequests.Filter()...), "\n"))
	}

	// A restarted agent finds nothing to change: what was filled in is not taken for the user's.
	f.stopAgent()
	f.HubRequests, f.WorkloadRequests = agenttest.NewRequests(f.Number), agenttest.NewRequests(f.Number)
	f.restart()
	f.lookedAt(3)
	f.WaitForIdle()
	if got := append(f.HubRequests.Writes(), f.WorkloadRequests.Writes()...); len(got) != 0 {
		t.Errorf("want no write after a restart, got:\n%s", strings.Join(got, "\n"))
	}
}

func TestConnectionSecretComesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	hub := f.WaitForPushed("db")
	source := f.CreateConnectionSecret("db-conn", hub, "one")
	f.MarkReady("db", "a")

	key := types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}
	arrived := func(password string) func() error {
		return func() error {
			s := &corev1.Secret{}
			if err := f.Workload.Get(f.Ctx, key, s); err != nil {
				return err
			}
			if got := string(s.Data["password"]); got != password {
				return fmt.Errorf("password is %q", got)
			}
			if !metav1.IsControlledBy(s, claim) || s.Type != crossplane.SecretTypeConnection || s.Labels[fleetv1alpha1.ManagedByLabel] != index.ManagedByValue {
				return fmt.Errorf("it is not the claim's: %v", s.ObjectMeta)
			}
			return nil
		}
	}
	f.Within("the Secret arrives", arrived("one"))

	source.Data["password"] = []byte("two")
	if err := f.Hub.Update(f.Ctx, source); err != nil {
		t.Fatal(err)
	}
	f.Within("a rotated value follows", arrived("two"))
	f.WaitForIdle()

	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	f.Edit(f.Workload, s, func() { s.Data["password"] = []byte("mine") })
	f.Within("a tampered value is put back", arrived("two"))
	f.Edit(f.Workload, s, func() { s.Labels = nil })
	f.Within("a removed label is put back", arrived("two"))
	if err := f.Workload.Delete(f.Ctx, s); err != nil {
		t.Fatal(err)
	}
	f.Within("a deleted Secret comes back", arrived("two"))

	f.WaitForIdle()
	before := len(f.WorkloadRequests.Writes())
	f.Edit(f.Workload, s, func() { metav1.SetMetaDataAnnotation(&s.ObjectMeta, "example.org/seen", "yes") })
	f.WaitForIdle()
	if err := f.Workload.Get(f.Ctx, key, s); err != nil || s.Annotations["example.org/seen"] != "yes" {
		t.Errorf("want another client's annotation to stay, got %v (%v)", s.Annotations, err)
	}
	if after := len(f.WorkloadRequests.Writes()); after != before {
		t.Errorf("want no write because of another client's annotation, got %v", f.WorkloadRequests.Writes()[before:])
	}

	// Nor are the metadata of the hub's Secret a reason to write.
	read := func() int { return len(f.HubRequests.Filter("GET", "/secrets/db-conn")) }
	reads := read()
	f.Edit(f.Hub, source, func() { metav1.SetMetaDataAnnotation(&source.ObjectMeta, "example.org/seen", "yes") })
	f.Within("the Secret is compared", func() error {
		if read() == reads {
			return errors.New("not yet")
		}
		return nil
	})
	f.WaitForIdle()
	if got := f.WorkloadRequests.Writes()[before:]; len(got) != 0 {
		t.Errorf("want no write, got %v", got)
	}
	reads = read()
	f.MarkReady("db", "b")
	f.Within("the claim is looked at again", func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if got, _, _ := unstructured.NestedString(u.Object, "status", "address"); err != nil || got != "b" {
			return fmt.Errorf("its address is %q (%w)", got, err)
		}
		return nil
	})
	f.WaitForIdle()
	if got := read(); got != reads {
		t.Errorf("want what was compared not to be read again, got %d reads", got-reads)
	}
	f.Edit(f.Hub, source, func() { source.Data["password"] = []byte("three") })
	f.Within("a rotated value still follows", arrived("three"))
}

func TestSecretThatTheHubsClaimDoesNotControlIsNotCopied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := f.NewClaim(f.Target, "other")
	other.Object["spec"] = map[string]any{"version": "8"}
	f.Create(f.Hub, other)
	f.CreateConnectionSecret("others", other, "secret")
	f.CreateConnectionSecret("uncontrolled", nil, "secret")
	f.Create(f.Hub, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Target, Name: "opaque"}, Data: map[string][]byte{"password": []byte("secret")},
	})

	for name, reason := range map[string]string{
		"others": fleetv1alpha1.ReasonSecretNotControlled, "uncontrolled": fleetv1alpha1.ReasonSecretNotControlled, "opaque": fleetv1alpha1.ReasonSynced,
	} {
		f.CreateClaim(name+"-db", agenttest.WithSecret(name))
		f.WaitForPushed(name + "-db")
		f.MarkReady(name+"-db", "a")
		f.WaitForSynced(name+"-db", reason)
	}
	f.WaitForIdle()
	for _, name := range []string{"others", "uncontrolled", "opaque"} {
		err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: name}, &corev1.Secret{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("want no Secret %q in the workload cluster, got %v", name, err)
		}
		if got := f.HubRequests.Filter("GET", "/secrets/"+name); len(got) != 0 {
			t.Errorf("want the Secret %q never to be read, got %v", name, got)
		}
	}
}

// TestForeignSecretInTheWorkloadClusterIsNotOverwritten waits for less than SlowRetry when it is gone.
func TestForeignSecretInTheWorkloadClusterIsNotOverwritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	mine := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Namespace, Name: "db-conn", Labels: map[string]string{fleetv1alpha1.ManagedByLabel: index.ManagedByValue},
		},
		StringData: map[string]string{"mine": "yes"},
	}
	f.Create(f.Workload, mine)
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.CreateConnectionSecret("db-conn", f.WaitForPushed("db"), "one")
	f.MarkReady("db", "a")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSecretConflict)
	got, key := &corev1.Secret{}, client.ObjectKeyFromObject(mine)
	if err := f.Workload.Get(f.Ctx, key, got); err != nil || got.ResourceVersion != mine.ResourceVersion {
		t.Errorf("want the Secret as it was, got %v (%v)", got.ObjectMeta, err)
	}

	w, _ := f.agent.workloads.Get(f.Cluster)
	f.Within("the Secret is watched", func() error {
		seen, err := w.Watcher.Get(index.AwaitedSecretKind(key), key)
		if err == nil && len(seen.GetLabels()) > 0 {
			t.Error("want no more than what identifies it")
		}
		return err
	})
	if err := f.Workload.Delete(f.Ctx, mine); err != nil {
		t.Fatal(err)
	}
	f.Within("the Secret arrives", f.SecretIs("db-conn", "one"))
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("nothing is watched in vain", func() error {
		if _, watched := w.AwaitedSecret(index.AwaitedSecretKind(key)); watched {
			return errors.New("it is watched")
		}
		return nil
	})
}

// TestCreationInTheHubIsTheArbiter writes to objects that were created, replaced or given to another source between the
// read and the write.
func TestCreationInTheHubIsTheArbiter(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	// The object is created between our read and our apply, with content on which an apply would not conflict.
	holder := f.NewClaim(f.Target, "db")
	holder.Object["spec"] = map[string]any{"version": "5.7"}
	f.Create(f.Hub, holder)
	intent := propagation.Intent(f.NewClaim(f.Namespace, "db"), ownership.Place{
		Kind:           kindwatch.Kind{GroupVersionKind: f.ClaimGVK(), Resource: "mysqlinstances"},
		NamespacedName: types.NamespacedName{Namespace: f.Target, Name: "db"},
	}, ownership.Source{Identifier: f.Identifier, Namespace: f.Namespace}.Annotations(), crossplane.FormClaim)
	err := f.Hub.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(propagation.ForCreation(intent)), client.FieldOwner("test"), client.ForceOwnership)
	if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		t.Errorf("want an apply for creation to be refused for an existing object, got %v", err)
	}
	stale := holder.DeepCopy()
	stale.SetUID("another")
	err = f.Hub.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(propagation.ForUpdate(intent, stale)), client.FieldOwner("test"), client.ForceOwnership)
	if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) {
		t.Errorf("want an apply for another object to be refused, got %v", err)
	}
	stale.SetName("nothing")
	intent.SetName("nothing")
	err = f.Hub.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(propagation.ForUpdate(intent, stale)), client.FieldOwner("test"), client.ForceOwnership)
	if !apierrors.IsConflict(err) {
		t.Errorf("want an apply for an object that is gone to be refused, got %v", err)
	}

	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	hub := f.NewClaim(f.Target, "raced")
	hub.SetAnnotations(f.source().Annotations())
	f.Create(f.Hub, hub)
	looked := hub.DeepCopy()
	them := ownership.Source{Identifier: "them", Namespace: "theirs"}
	f.Edit(f.Hub, hub, func() { hub.SetAnnotations(them.Annotations()) })
	claim := f.NewClaim(f.Namespace, "raced")
	claim.Object["spec"] = map[string]any{"version": "8"}
	s := &downstream.Scope{Workload: w, Facts: plan.Facts{ObjectRequest: multicluster.ObjectRequest{ClusterName: f.Cluster}, Claim: claim, Source: f.source()}}
	s.Kind.GroupVersionKind, s.Kind.Resource, s.Namespace, s.Name = f.ClaimGVK(), "mysqlinstances", f.Namespace, "raced"
	key := ownership.Place{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: f.Target, Name: "raced"}}
	ctx := f.agent.requirements.identities.Manager.In(f.Ctx)
	if _, err := f.agent.requirements.push(ctx, s, key, looked); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict, which is tried again silently, got %v", err)
	}
	if now, err := f.GetClaim(f.Hub, f.Target, "raced"); err != nil || now.GetResourceVersion() != hub.GetResourceVersion() {
		t.Errorf("want it left alone, got %v (%v)", now, err)
	}
}

// A foreign finalizer keeps a claim after its object is gone from the hub, and its condition does not go on waiting for
// the hub. A claim that nothing holds is not reported.
func TestDeletedClaimThatOthersHoldSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, held := range map[string]bool{"held": true, "free": false} {
		claim := f.CreateClaim(name)
		f.WaitForPushed(name)
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
		hub := f.NewClaim(f.Target, name)
		f.Edit(f.Hub, hub, func() { controllerutil.AddFinalizer(hub, "finalizer.apiextensions.crossplane.io") })
		if held {
			f.Edit(f.Workload, claim, func() { controllerutil.AddFinalizer(claim, "example.org/keep") })
		}
		if err := f.Workload.Delete(f.Ctx, claim); err != nil {
			t.Fatal(err)
		}
		f.WaitForSynced(name, fleetv1alpha1.ReasonDeleting)
		f.WaitForIdle()
		before := len(f.WorkloadRequests.Writes())
		f.Edit(f.Hub, hub, func() { controllerutil.RemoveFinalizer(hub, "finalizer.apiextensions.crossplane.io") })
		f.WaitForGone(f.Hub, f.Target, name)
		want := 1
		if held {
			want = 2 // The condition, and then the finalizer.
			f.Within("the finalizer is removed", func() error {
				now, err := f.GetClaim(f.Workload, f.Namespace, name)
				if got := now.GetFinalizers(); err != nil || !slices.Equal(got, []string{"example.org/keep"}) {
					return fmt.Errorf("got %v (%w)", got, err)
				}
				c := propagation.AgentSynced(now)
				message, _ := c["message"].(string)
				if c["reason"] != fleetv1alpha1.ReasonDeleting || !strings.Contains(message, "released") || !strings.Contains(message, "example.org/keep") {
					t.Errorf("want what holds it to be named, got %v", c)
				}
				return nil
			})
		} else {
			f.WaitForGone(f.Workload, f.Namespace, name)
		}
		f.WaitForIdle()
		if got := f.WorkloadRequests.Writes()[before:]; len(got) != want {
			t.Errorf("%s: want %d writes, got %v", name, want, got)
		}
		if held {
			f.Edit(f.Workload, claim, func() { controllerutil.RemoveFinalizer(claim, "example.org/keep") })
			f.WaitForGone(f.Workload, f.Namespace, name)
		}
	}
}

func TestClaimThatTheHubCannotTakeSaysSo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.settledClaim("old")
	// A hub webhook without a server.
	hook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:         "down.example.org",
			ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{f.Group}, APIVersions: []string{"*"}, Resources: []string{"mysqlinstances"}},
			}},
			SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionv1.Fail),
		}},
	}
	f.Create(f.Hub, hook)
	f.Within("the webhook is called", func() error {
		u := f.NewClaim(f.Target, "probe")
		u.Object["spec"] = map[string]any{"storageGB": int64(20)}
		if err := f.Hub.Create(f.Ctx, u, client.DryRunAll); err == nil {
			return errors.New("it is not")
		}
		return nil
	})
	f.CreateClaim("new")
	f.TouchClaim("old")
	for _, name := range []string{"new", "old"} {
		f.WaitForMessage(name, fleetv1alpha1.ReasonHubUnavailable)
		c := propagation.AgentSynced(f.MustGetClaim(name))
		if c["status"] != "Unknown" {
			t.Errorf("want it not to be known whether the hub holds %s, got %v", name, c)
		}
		if message, _ := c["message"].(string); strings.Contains(message, "127.0.0.1") || strings.Contains(message, "down.example.org") {
			t.Errorf("want nothing of the hub's answer, got %q", message)
		}
	}
	if err := f.Hub.Delete(f.Ctx, hook); err != nil {
		t.Fatal(err)
	}
	f.WaitForSynced("new", fleetv1alpha1.ReasonSynced)
	f.WaitForSynced("old", fleetv1alpha1.ReasonSynced)
}
