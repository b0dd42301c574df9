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

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// secretIs reports whether a Secret in the workload cluster has a password; none if that is empty.
func (f *fixture) secretIs(name, password string) func() error {
	return func() error {
		s := &corev1.Secret{}
		err := f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, s)
		if password == "" && apierrors.IsNotFound(err) {
			return nil
		}
		if got := string(s.Data["password"]); err != nil || got != password {
			return fmt.Errorf("want the password %q, got %q (%w)", password, got, errors.Join(err, errors.New("not equal")))
		}
		return nil
	}
}

// withCopiedSecret creates a claim whose connection Secret is in the workload cluster.
func (f *fixture) withCopiedSecret() (claim, hub *unstructured.Unstructured, source *corev1.Secret) {
	f.T.Helper()
	claim = f.claim("db", withSecret("db-conn"))
	hub = f.pushed("db")
	source = f.connectionSecret("db-conn", hub, "one")
	f.ready("db", "a")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the Secret arrives", f.secretIs("db-conn", "one"))
	f.settled()
	return claim, hub, source
}

func TestRefusedSecretIsReportedAndTheStatusComesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.served()
	f.Create(f.workload, &admissionv1.ValidatingAdmissionPolicy{
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
	f.Create(f.workload, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: f.class, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	})
	f.Within("the policy is in force", func() error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}}
		if f.workload.Create(f.Ctx, s, client.DryRunAll) == nil {
			return errors.New("it is not")
		}
		return nil
	})
	f.claim("db", withSecret("db-conn"))
	f.connectionSecret("db-conn", f.pushed("db"), "one")
	f.ready("db", "db.example.org")
	claim := f.synced("db", fleetv1alpha1.ReasonSecretRejected)
	if message, _ := propagation.AgentSynced(claim)["message"].(string); !strings.Contains(message, "no Secrets here") || len(message) > 400 {
		t.Errorf("want the cluster's reason, bounded, got %q", message)
	}
	f.Within("the hub's status comes back", func() error {
		claim := f.synced("db", fleetv1alpha1.ReasonSecretRejected)
		if got, _, _ := unstructured.NestedString(claim.Object, "status", "address"); got != "db.example.org" {
			return fmt.Errorf("the status is %v", claim.Object["status"])
		}
		return nil
	})
}

// TestSecretThatChangesItsOwnerInTheHubIsReported has a Secret in the hub change its owner, go, come back, and be
// withheld. The instance that it was copied by is replaced before.
func TestSecretThatChangesItsOwnerInTheHubIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, hub, source := f.withCopiedSecret()
	before, _ := f.agent.workloads.Get(f.cluster)
	key := types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}
	version := before.WroteVersion(key)
	f.engage()
	f.Within("the new instance counts", func() error {
		w, ok := f.agent.workloads.Get(f.cluster)
		if !ok || w == before {
			return errors.New("not yet")
		}
		if got := w.WroteVersion(key); got != version || version == "" {
			t.Fatalf("want the version %q to be handed over, got %q", version, got)
		}
		return nil
	})

	f.Edit(f.hub, source, func() { source.OwnerReferences[0].UID = "another"; source.OwnerReferences[0].Name = "another" })
	f.synced("db", fleetv1alpha1.ReasonSecretNotControlled)
	f.Edit(f.hub, source, func() {
		source.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(hub, hub.GroupVersionKind())}
	})
	f.synced("db", fleetv1alpha1.ReasonSynced)

	if err := f.hub.Delete(f.Ctx, source); err != nil {
		t.Fatal(err)
	}
	f.synced("db", fleetv1alpha1.ReasonSecretMissing)
	if err := f.secretIs("db-conn", "one")(); err != nil {
		t.Errorf("want the copy to be kept: %v", err)
	}
	source = f.connectionSecret("db-conn", hub, "two")
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the new one follows", f.secretIs("db-conn", "two"))

	f.Edit(f.hub, source, func() { source.Labels = map[string]string{fleetv1alpha1.DeliverLabel: "false"} })
	f.Within("one that is withheld goes", f.secretIs("db-conn", ""))
	f.synced("db", fleetv1alpha1.ReasonSecretWithheld)
}

func TestTamperingWhileDisconnectedIsPutBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.withCopiedSecret()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db-conn"}}
	f.disengageCluster()
	f.Within("the cluster is disengaged", func() error {
		if _, ok := f.agent.workloads.Get(f.cluster); ok {
			return errors.New("it is not")
		}
		return nil
	})
	f.settled()
	f.Edit(f.workload, s, func() { s.Data["password"] = []byte("mine") })
	f.engage()
	f.Within("what was changed meanwhile is put back", f.secretIs("db-conn", "one"))
	f.stopAgent()
	f.Edit(f.workload, s, func() { s.Data["password"] = []byte("mine") })
	f.restart()
	f.Within("what was changed before a restart is put back", f.secretIs("db-conn", "one"))
}

// createOrphan creates what `kubectl delete --cascade=orphan` of its claim leaves of a copy, under another name, and
// immutable if that is wanted.
func (f *fixture) createOrphan(name, as string, immutable bool) {
	f.T.Helper()
	s := &corev1.Secret{}
	if err := f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, s); err != nil {
		f.T.Fatal(err)
	}
	f.Create(f.workload, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: as, Labels: s.Labels, Annotations: s.Annotations},
		Type:       s.Type, Data: map[string][]byte{"password": []byte("of what is gone")}, Immutable: &immutable,
	})
}

// controls waits until an object controls a Secret in the workload cluster.
func (f *fixture) controls(claim *unstructured.Unstructured, name string) {
	f.T.Helper()
	s := &corev1.Secret{}
	f.Within("the owner of "+name, func() error {
		if err := f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: name}, s); err != nil {
			return err
		}
		if !metav1.IsControlledBy(s, claim) {
			return fmt.Errorf("got %v", s.OwnerReferences)
		}
		return nil
	})
}

// TestCopyThatLostItsOwnerIsNotInTheWay is about `kubectl delete --cascade=orphan` of a claim. A copy that is no longer
// requested is deleted.
func TestCopyThatLostItsOwnerIsNotInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim, hub, _ := f.withCopiedSecret()
	for name, immutable := range map[string]bool{"next": false, "immutable": true} {
		f.createOrphan("db-conn", name, immutable)
		next := f.claim(name, withSecret(name))
		f.connectionSecret(name, f.pushed(name), "two")
		f.ready(name, "a")
		f.Within("the Secret arrives", f.secretIs(name, "two"))
		f.controls(next, name)
		f.synced(name, fleetv1alpha1.ReasonSynced)
	}
	// The claim may be there still, and the content the same.
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db-conn"}}
	f.Edit(f.workload, s, func() { s.OwnerReferences = nil })
	f.controls(claim, "db-conn")
	f.synced("db", fleetv1alpha1.ReasonSynced)

	// Secrets with another owner are not touched, regardless of their labels.
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, Name: "forged", Labels: map[string]string{"masthead.dev/managed-by": index.ManagedByValue},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(claim, claim.GroupVersionKind())},
	}}
	f.Create(f.workload, forged)
	f.connectionSecret("second", hub, "two")
	f.Edit(f.workload, claim, func() { withSecret("second")(claim) })
	f.Within("the new one arrives", f.secretIs("second", "two"))
	f.Within("the old one goes", f.secretIs("db-conn", ""))
	f.Edit(f.workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "writeConnectionSecretToRef") })
	f.Within("the last one goes", f.secretIs("second", ""))
	if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(forged), forged); err != nil {
		t.Errorf("want a Secret that is no copy to stay, got %v", err)
	}
}

func TestBounded(t *testing.T) {
	if got := multicluster.BoundedText("a\x1b[2Jb\nc\u202ed"); strings.ContainsAny(got, "\x1b\n\u202e") || !strings.HasPrefix(got, "a") {
		t.Errorf("want no control characters, got %q", got)
	}
	if got := []rune(multicluster.BoundedText(strings.Repeat("ü", 10_000))); len(got) != multicluster.MaxForeignText {
		t.Errorf("want %d runes, got %d", multicluster.MaxForeignText, len(got))
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
	live := agenttest.Parse(t, `{'metadata':{'name':'db','namespace':'bar','uid':'new','resourceVersion':'5'}}`)
	h := fakeHub(t, func(*index.Hub, kindwatch.Event) {})
	r := &requirementReconciler{hub: h, hubReader: liveReader{obj: live}}
	s := &downstream.Scope{Facts: offeredClaim(live)}
	conflict := apierrors.NewConflict(s.Kind.GroupResource(), "db", errors.New("uid mismatch"))
	before := agenttest.Parse(t, `{'metadata':{'name':'db','namespace':'bar','uid':'old','resourceVersion':'4'}}`)
	for name, looked := range map[string]*unstructured.Unstructured{
		"another object was looked at":                               before,
		"no object was looked at, and the watch has caught up since": nil,
	} {
		err := r.explain(t.Context(), s, ownershiptest.InBar("db"), looked, "patch", conflict)
		if !apierrors.IsConflict(err) {
			t.Errorf("%s: want a conflict, which is retried silently and with back-off, got %v", name, err)
		}
	}
}
