// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// secretIs says whether a Secret in the workload cluster has a password; none if that is empty.
func (f *fixture) secretIs(name, password string) func() error {
	return func() error {
		s := &corev1.Secret{}
		err := f.workload.Get(f.ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, s)
		if password == "" && apierrors.IsNotFound(err) {
			return nil
		}
		if got := string(s.Data["password"]); err != nil || got != password {
			return fmt.Errorf("want the password %q, got %q (%w)", password, got, errors.Join(err, errors.New("not equal")))
		}
		return nil
	}
}

// withCopiedSecret makes a claim whose connection Secret is in the workload cluster.
func (f *fixture) withCopiedSecret() (claim, hub *unstructured.Unstructured, source *corev1.Secret) {
	f.t.Helper()
	claim = f.claim("db", withSecret("db-conn"))
	hub = f.pushed("db")
	source = f.connectionSecret("db-conn", hub, "one")
	f.ready("db", "a")
	f.synced("db", ReasonSynced)
	f.eventually("the Secret arrives", f.secretIs("db-conn", "one"))
	f.settled()
	return claim, hub, source
}

func TestRefusedSecretIsToldAndTheStatusComesBackAllTheSame(t *testing.T) {
	f := newFixture(t)
	f.served()
	f.create(f.workload, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
				}}},
			},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "no Secrets here " + strings.Repeat("x", 500)}},
		},
	})
	f.create(f.workload, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: f.class, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	})
	f.eventually("the policy is in force", func() error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}}
		if f.workload.Create(f.ctx, s, client.DryRunAll) == nil {
			return errors.New("it is not")
		}
		return nil
	})
	f.claim("db", withSecret("db-conn"))
	f.connectionSecret("db-conn", f.pushed("db"), "one")
	f.ready("db", "db.example.org")
	claim := f.synced("db", ReasonSecretRejected)
	if message, _ := agentSynced(claim)["message"].(string); !strings.Contains(message, "no Secrets here") || len(message) > 400 {
		t.Errorf("want the cluster's reason, bounded, got %q", message)
	}
	f.eventually("the hub's status comes back", func() error {
		claim := f.synced("db", ReasonSecretRejected)
		if got, _, _ := unstructured.NestedString(claim.Object, "status", "address"); got != "db.example.org" {
			return fmt.Errorf("the status is %v", claim.Object["status"])
		}
		return nil
	})
}

func TestSecretThatChangesItsOwnerInTheHubIsTold(t *testing.T) {
	f := newFixture(t)
	_, hub, source := f.withCopiedSecret()
	f.edit(f.hub, source, func() { source.OwnerReferences[0].UID = "another"; source.OwnerReferences[0].Name = "another" })
	f.synced("db", ReasonSecretNotControlled)
	f.edit(f.hub, source, func() {
		source.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(hub, hub.GroupVersionKind())}
	})
	f.synced("db", ReasonSynced)
}

func TestTamperingWhileDisconnectedIsPutBack(t *testing.T) {
	for name, way := range map[string]struct{ end, again func(*fixture) }{
		"Engaged": {
			end: func(f *fixture) {
				f.disengageCluster()
				f.eventually("the cluster is disengaged", func() error {
					if _, ok := f.agent.workloads.get(f.cluster); ok {
						return errors.New("it is not")
					}
					return nil
				})
				f.settled()
			},
			again: (*fixture).engage,
		},
		"Restarted": {end: func(f *fixture) { f.stopAgent() }, again: (*fixture).restart},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.withCopiedSecret()
			way.end(f)
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db-conn"}}
			f.edit(f.workload, s, func() { s.Data["password"] = []byte("mine") })
			way.again(f)
			f.eventually("what was changed meanwhile is put back", f.secretIs("db-conn", "one"))
		})
	}
}

func TestHandOverRemembersTheSecrets(t *testing.T) {
	f := newFixture(t)
	f.withCopiedSecret()
	before, _ := f.agent.workloads.get(f.cluster)
	key := types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}
	version := before.wroteVersion(key)
	f.engage()
	f.eventually("the new instance counts", func() error {
		w, ok := f.agent.workloads.get(f.cluster)
		if !ok || w == before {
			return errors.New("not yet")
		}
		if got := w.wroteVersion(key); got != version || version == "" {
			t.Fatalf("want the version %q to be handed over, got %q", version, got)
		}
		return nil
	})
}

func TestCopyThatIsNotAskedForAnyMoreGoes(t *testing.T) {
	f := newFixture(t)
	claim, hub, _ := f.withCopiedSecret()
	// Somebody else's Secrets are not touched, whatever their labels.
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: "forged", Labels: map[string]string{"masthead.dev/managed-by": managedByValue},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(claim, claim.GroupVersionKind())},
	}}
	f.create(f.workload, forged)
	f.connectionSecret("second", hub, "two")
	f.edit(f.workload, claim, func() { withSecret("second")(claim) })
	f.eventually("the new one arrives", f.secretIs("second", "two"))
	f.eventually("the old one goes", f.secretIs("db-conn", ""))
	f.edit(f.workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "writeConnectionSecretToRef") })
	f.eventually("the last one goes", f.secretIs("second", ""))
	if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(forged), forged); err != nil {
		t.Errorf("want a Secret that is no copy to stay, got %v", err)
	}
}

// TestClaimGoesOnAsSoonAsAForeignSecretIsGone waits for less than slowRetry.
func TestClaimGoesOnAsSoonAsAForeignSecretIsGone(t *testing.T) {
	f := newFixture(t)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db-conn"}}
	f.create(f.workload, foreign)
	f.claim("db", withSecret("db-conn"))
	f.connectionSecret("db-conn", f.pushed("db"), "one")
	f.ready("db", "a")
	f.synced("db", ReasonSecretConflict)
	w, _ := f.agent.workloads.get(f.cluster)
	key := client.ObjectKeyFromObject(foreign)
	f.eventually("the Secret is watched", func() error {
		seen, err := w.watcher.Get(awaitedSecretKind(key), key)
		if err == nil && len(seen.GetLabels()) > 0 {
			t.Error("want no more than what identifies it")
		}
		return err
	})
	if err := f.workload.Delete(f.ctx, foreign); err != nil {
		t.Fatal(err)
	}
	f.eventually("the Secret arrives", f.secretIs("db-conn", "one"))
	f.synced("db", ReasonSynced)
	f.eventually("nothing is watched in vain", func() error {
		if w.isAwaited(awaitedSecretKind(key)) {
			return errors.New("it is watched")
		}
		return nil
	})
}

func TestFewAwaitedSecretsAreWatched(t *testing.T) {
	w := idleWorkload(t, "w1", identity{})
	kind := bar("").kind
	request := func(i int) Request {
		return Request{ClusterName: "w1", Kind: kind, NamespacedName: types.NamespacedName{Namespace: "foo", Name: fmt.Sprint(i)}}
	}
	secret := func(i int) types.NamespacedName {
		return types.NamespacedName{Namespace: "foo", Name: fmt.Sprint("secret-", i)}
	}
	for i := range 2 * maxAwaitedSecrets {
		w.awaitSecrets(request(i), secret(i))
	}
	if got := len(w.awaited.watched); got != maxAwaitedSecrets {
		t.Errorf("want %d Secrets to be watched, got %d", maxAwaitedSecrets, got)
	}
	w.awaitSecrets(request(0))
	w.awaitSecrets(request(maxAwaitedSecrets), secret(maxAwaitedSecrets))
	if !w.isAwaited(awaitedSecretKind(secret(maxAwaitedSecrets))) || w.isAwaited(awaitedSecretKind(secret(0))) {
		t.Error("want the place of one that is not waited for to go to one that is asked for again")
	}
	// Of two that wait for the same Secret, one ceases to.
	w.awaitSecrets(request(1), secret(2))
	w.awaitSecrets(request(2))
	if !w.isAwaited(awaitedSecretKind(secret(2))) {
		t.Error("want a Secret to be watched as long as one claim waits for it")
	}
	w.forgetAwaiting(func(Request) bool { return true })
	if n := len(w.awaited.watched) + len(w.awaited.keys) + len(w.awaited.requests); n != 0 {
		t.Errorf("want nothing to be left, got %d", n)
	}
}

func TestSecretThatIsGoneFromTheHubIsToldAndItsCopyKept(t *testing.T) {
	f := newFixture(t)
	_, hub, source := f.withCopiedSecret()
	if err := f.hub.Delete(f.ctx, source); err != nil {
		t.Fatal(err)
	}
	f.synced("db", ReasonSecretMissing)
	if err := f.secretIs("db-conn", "one")(); err != nil {
		t.Errorf("want the copy to be kept: %v", err)
	}
	f.connectionSecret("db-conn", hub, "two")
	f.synced("db", ReasonSynced)
	f.eventually("the new one follows", f.secretIs("db-conn", "two"))
}

func TestWorkloadProblem(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Right":     {reason: "A right can be granted.", err: apierrors.NewForbidden(resource, "a", errors.New(`User "x" cannot create resource "secrets" in API group ""`)), want: ReasonWorkloadForbidden},
		"Policy":    {reason: "A policy says no every time.", err: apierrors.NewForbidden(resource, "a", errors.New("denied")), want: ReasonSecretRejected},
		"Immutable": {reason: "An immutable Secret stays immutable.", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil), want: ReasonSecretRejected},
		"Namespace": {reason: "A namespace that goes does not come back soon.", err: apierrors.NewForbidden(resource, "a", errors.New("because it is being terminated")), want: ReasonSecretRejected},
		"Busy":      {reason: "What passes is retried.", err: apierrors.NewTooManyRequests("later", 1)},
		"Conflict":  {reason: "So is what somebody else changed.", err: apierrors.NewConflict(resource, "a", errors.New("changed"))},
		"Broken":    {reason: "And what did not arrive.", err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := workloadProblem(fmt.Errorf("cannot: %w", tc.err), "write the Secret", ReasonSecretRejected); p != nil {
				got = p.reason
			}
			if got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestBounded(t *testing.T) {
	if got := multicluster.BoundedText("a\x1b[2Jb\nc\u202ed"); strings.ContainsAny(got, "\x1b\n\u202e") || !strings.HasPrefix(got, "a") {
		t.Errorf("want no control characters, got %q", got)
	}
	if got := []rune(multicluster.BoundedText(strings.Repeat("ü", 10_000))); len(got) != multicluster.MaxForeignText+3 {
		t.Errorf("want %d runes and an ellipsis, got %d", multicluster.MaxForeignText, len(got))
	}
	cause := apierrors.NewConflict(schema.GroupResource{}, "a", errors.New(strings.Repeat("x", 10_000)))
	if err := multicluster.AsForeign(cause); len(err.Error()) > 2*multicluster.MaxForeignText || !apierrors.IsConflict(err) {
		t.Errorf("want the text bounded and the cause kept, got %v", err)
	}
}

// liveReader is an API server that has one object.
type liveReader struct {
	client.Reader
	obj *unstructured.Unstructured
}

func (l liveReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.(*unstructured.Unstructured).Object = l.obj.DeepCopy().Object
	return nil
}

func TestWatchThatIsBehindIsWaitedForWithBackOff(t *testing.T) {
	live := parse(t, `{'metadata':{'name':'db','namespace':'bar','uid':'new','resourceVersion':'5'}}`)
	h := fakeHub(t, func(*hub, kindwatch.Event) {})
	r := &requirementReconciler{hub: h, hubReader: liveReader{obj: live}}
	s := &scope{Request: Request{NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}, Kind: bar("").kind}}
	conflict := apierrors.NewConflict(s.Kind.GroupResource(), "db", errors.New("uid mismatch"))
	before := parse(t, `{'metadata':{'name':'db','namespace':'bar','uid':'old','resourceVersion':'4'}}`)
	for name, looked := range map[string]*unstructured.Unstructured{
		"another object was looked at":                               before,
		"no object was looked at, and the watch has caught up since": nil,
	} {
		o, err := r.explain(t.Context(), s, bar("db"), looked, "patch", conflict)
		if o != nil || !apierrors.IsConflict(err) {
			t.Errorf("%s: want a conflict, which is retried silently and with back-off, got %v, %v", name, o, err)
		}
	}
}
