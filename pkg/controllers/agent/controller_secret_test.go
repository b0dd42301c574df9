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
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/downstream"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

func TestRefusedSecretIsReportedAndTheStatusComesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	here := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.Namespace}}
	f.Refuse(f.Workload, here, admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets"}},
	}, admissionv1.Validation{Expression: "false", Message: "no Secrets here " + strings.Repeat("x", 500)}, func() error {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "probe"}}
		return f.Workload.Create(f.Ctx, s, client.DryRunAll)
	})
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.CreateConnectionSecret("db-conn", f.WaitForPushed("db"), "one")
	f.MarkReady("db", "db.example.org")
	claim := f.WaitForSynced("db", fleetv1alpha1.ReasonSecretRejected)
	if message, _ := propagation.AgentSynced(claim)["message"].(string); !strings.Contains(message, "no Secrets here") || len(message) > 400 {
		t.Errorf("want the cluster's reason, bounded, got %q", message)
	}
	f.Within("the hub's status comes back", func() error {
		claim := f.WaitForSynced("db", fleetv1alpha1.ReasonSecretRejected)
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
	_, hub, source := f.CreateClaimWithCopiedSecret()
	before, _ := f.agent.workloads.Get(f.Cluster)
	key := types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}
	version := before.CopyState(key).Version
	f.engage()
	f.Within("the new instance counts", func() error {
		w, ok := f.agent.workloads.Get(f.Cluster)
		if !ok || w == before {
			return errors.New("not yet")
		}
		if got := w.CopyState(key).Version; got != version || version == "" {
			t.Fatalf("want the version %q to be handed over, got %q", version, got)
		}
		return nil
	})

	f.Edit(f.Hub, source, func() { source.OwnerReferences[0].UID = "another"; source.OwnerReferences[0].Name = "another" })
	f.WaitForSynced("db", fleetv1alpha1.ReasonSecretNotControlled)
	f.Edit(f.Hub, source, func() {
		source.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(hub, hub.GroupVersionKind())}
	})
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

	if err := f.Hub.Delete(f.Ctx, source); err != nil {
		t.Fatal(err)
	}
	f.WaitForSynced("db", fleetv1alpha1.ReasonSecretMissing)
	if err := f.SecretIs("db-conn", "one")(); err != nil {
		t.Errorf("want the copy to be kept: %v", err)
	}
	source = f.CreateConnectionSecret("db-conn", hub, "two")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.Within("the new one follows", f.SecretIs("db-conn", "two"))

	f.Edit(f.Hub, source, func() { source.Labels = map[string]string{fleetv1alpha1.DeliverLabel: "false"} })
	f.Within("one that is withheld goes", f.SecretIs("db-conn", ""))
	f.WaitForSynced("db", fleetv1alpha1.ReasonSecretWithheld)
}

func TestTamperingWhileDisconnectedIsPutBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateClaimWithCopiedSecret()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "db-conn"}}
	f.disengageCluster()
	f.Within("the cluster is disengaged", func() error {
		if _, ok := f.agent.workloads.Get(f.Cluster); ok {
			return errors.New("it is not")
		}
		return nil
	})
	f.WaitForIdle()
	f.Edit(f.Workload, s, func() { s.Data["password"] = []byte("mine") })
	f.engage()
	f.Within("what was changed meanwhile is put back", f.SecretIs("db-conn", "one"))
	f.stopAgent()
	f.Edit(f.Workload, s, func() { s.Data["password"] = []byte("mine") })
	f.restart()
	f.Within("what was changed before a restart is put back", f.SecretIs("db-conn", "one"))
}

// TestCopyThatLostItsOwnerIsNotInTheWay is about `kubectl delete --cascade=orphan` of a claim. A copy that is no longer
// requested is deleted.
func TestCopyThatLostItsOwnerIsNotInTheWay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim, hub, _ := f.CreateClaimWithCopiedSecret()
	for name, immutable := range map[string]bool{"next": false, "immutable": true} {
		f.CreateOrphan("db-conn", name, immutable)
		next := f.CreateClaim(name, agenttest.WithSecret(name))
		f.CreateConnectionSecret(name, f.WaitForPushed(name), "two")
		f.MarkReady(name, "a")
		f.Within("the Secret arrives", f.SecretIs(name, "two"))
		f.WaitForController(next, name)
		f.WaitForSynced(name, fleetv1alpha1.ReasonSynced)
	}
	// The claim may be there still, and the content the same.
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "db-conn"}}
	f.Edit(f.Workload, s, func() { s.OwnerReferences = nil })
	f.WaitForController(claim, "db-conn")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)

	// Secrets with another owner are not touched, regardless of their labels.
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.Namespace, Name: "forged", Labels: map[string]string{"masthead.dev/managed-by": index.ManagedByValue},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(claim, claim.GroupVersionKind())},
	}}
	f.Create(f.Workload, forged)
	f.CreateConnectionSecret("second", hub, "two")
	f.Edit(f.Workload, claim, func() { agenttest.WithSecret("second")(claim) })
	f.Within("the new one arrives", f.SecretIs("second", "two"))
	f.Within("the old one goes", f.SecretIs("db-conn", ""))
	f.Edit(f.Workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "writeConnectionSecretToRef") })
	f.Within("the last one goes", f.SecretIs("second", ""))
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(forged), forged); err != nil {
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
