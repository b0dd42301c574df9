// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
)

// refuseFinalizers makes the workload cluster reject every change that adds a finalizer to a claim.
func (f *fixture) refuseFinalizers(claim *unstructured.Unstructured) {
	f.T.Helper()
	rule := admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{admissionv1.Update}, Rule: f.ClaimRule()}
	f.Refuse(f.Workload, nil, rule, admissionv1.Validation{
		Expression: "object.metadata.?finalizers.orValue([]).size() <= oldObject.metadata.?finalizers.orValue([]).size()",
		Message:    "no more finalizers here",
	}, func() error {
		probe := []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/probe"}]`)
		return f.Workload.Patch(f.Ctx, claim.DeepCopy(), client.RawPatch(types.JSONPatchType, probe), client.DryRunAll)
	})
}

// A status and a Secret flow down without waiting for the push: not if the hub rejects it, nor if the cluster refuses
// the finalizer before.
func TestSecretsAndStatusArriveWhileNothingCanBePushed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	hub := f.WaitForPushed("db")
	secret := f.CreateConnectionSecret("db-conn", hub, "one")
	f.MarkReady("db", "a")
	f.recorded("db", hub)
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	arrive := func(reason, password, address string) {
		t.Helper()
		f.WaitForSynced("db", reason)
		f.Edit(f.Hub, secret, func() { secret.Data["password"] = []byte(password) })
		f.Within("a password that was rotated follows", f.SecretIs("db-conn", password))
		local := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "db-conn"}}
		if err := f.Workload.Delete(f.Ctx, local); err != nil {
			t.Fatal(err)
		}
		f.Within("a copy that was deleted comes back", f.SecretIs("db-conn", password))
		f.MarkReady("db", address)
		f.Within("the status follows", func() error {
			if got, _, _ := unstructured.NestedString(f.MustGetClaim("db").Object, "status", "address"); got != address {
				return fmt.Errorf("the address is %q", got)
			}
			return nil
		})
		f.WaitForSynced("db", reason)
	}

	f.LimitInHub(100)
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(1000), "spec", "storageGB") })
	arrive(fleetv1alpha1.ReasonRejected, "two", "b")
	f.Edit(f.Workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(20), "spec", "storageGB") })
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.refuseFinalizers(claim)
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers(nil) })
	arrive(fleetv1alpha1.ReasonWorkloadRejected, "three", "c")
}

// TestNoPasswordFlowsFromAWithdrawnNamespace disallows the namespace of a claim's object, while the claim is to move to
// another namespace that it may choose.
func TestNoPasswordFlowsFromAWithdrawnNamespace(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	old, other := f.CreateHubNamespace(f.Class+"-old"), f.CreateHubNamespace(f.Class+"-other")
	allow := func(names ...string) {
		f.editClass(func(a *fleetv1alpha1.AgentSpec) {
			a.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{List: names}
		})
	}
	allow(old, other)
	f.targetAnnotation(old)
	f.start()
	f.CreateClaim("db", agenttest.WithSecret("db-conn"))
	f.WaitForPushedTo(old, "db")
	hub, err := f.GetClaim(f.Hub, old, "db")
	if err != nil {
		t.Fatal(err)
	}
	secret := f.CreateConnectionSecret("db-conn", hub, "one")
	f.recorded("db", hub)
	password := func(want string) func() error {
		return func() error {
			got := &corev1.Secret{}
			err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}, got)
			if err != nil || string(got.Data["password"]) != want {
				return fmt.Errorf("the password is %q: %w", got.Data["password"], err)
			}
			return nil
		}
	}
	f.Within("the password arrives", password("one"))

	f.targetAnnotation(other)
	f.WaitForSynced("db", fleetv1alpha1.ReasonTargetNamespaceChanged)
	allow(other)
	f.WaitForIdle()
	f.Edit(f.Hub, secret, func() { secret.Data["password"] = []byte("two") })
	f.WaitForIdle()
	if err := password("one")(); err != nil {
		t.Errorf("want no password from a namespace that was taken away: %v", err)
	}
	allow(old, other)
	f.Within("the password arrives when the namespace is allowed again", password("two"))
}
