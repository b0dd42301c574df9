// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// refuseFinalizers makes the workload cluster reject every change that adds a finalizer to a claim.
func (f *fixture) refuseFinalizers(claim *unstructured.Unstructured) {
	f.T.Helper()
	f.Create(f.workload, &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{f.group}, APIVersions: []string{"*"}, Resources: []string{"mysqlinstances"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: "object.metadata.?finalizers.orValue([]).size() <= oldObject.metadata.?finalizers.orValue([]).size()",
				Message:    "no more finalizers here",
			}},
		},
	})
	f.Create(f.workload, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.class},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: f.class, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	})
	f.Within("the policy is in force", func() error {
		probe := []byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/probe"}]`)
		if f.workload.Patch(f.Ctx, claim.DeepCopy(), client.RawPatch(types.JSONPatchType, probe), client.DryRunAll) == nil {
			return errors.New("it is not")
		}
		return nil
	})
}

// A status and a Secret flow down without waiting for the push: not if the hub rejects it, nor if the cluster refuses
// the finalizer before.
func TestSecretsAndStatusArriveWhileNothingCanBePushed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.claim("db", withSecret("db-conn"))
	hub := f.pushed("db")
	secret := f.connectionSecret("db-conn", hub, "one")
	f.ready("db", "a")
	f.recorded("db", hub)
	f.synced("db", fleetv1alpha1.ReasonSynced)
	arrive := func(reason, password, address string) {
		t.Helper()
		f.synced("db", reason)
		f.Edit(f.hub, secret, func() { secret.Data["password"] = []byte(password) })
		f.Within("a password that was rotated follows", f.secretIs("db-conn", password))
		local := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "db-conn"}}
		if err := f.workload.Delete(f.Ctx, local); err != nil {
			t.Fatal(err)
		}
		f.Within("a copy that was deleted comes back", f.secretIs("db-conn", password))
		f.ready("db", address)
		f.Within("the status follows", func() error {
			if got, _, _ := unstructured.NestedString(f.mustGet("db").Object, "status", "address"); got != address {
				return fmt.Errorf("the address is %q", got)
			}
			return nil
		})
		f.synced("db", reason)
	}

	f.limitInHub(100)
	f.Edit(f.workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(1000), "spec", "storageGB") })
	arrive(fleetv1alpha1.ReasonRejected, "two", "b")
	f.Edit(f.workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(20), "spec", "storageGB") })
	f.synced("db", fleetv1alpha1.ReasonSynced)
	f.refuseFinalizers(claim)
	f.Edit(f.workload, claim, func() { claim.SetFinalizers(nil) })
	arrive(fleetv1alpha1.ReasonWorkloadRejected, "three", "c")
}

// TestNoPasswordFlowsFromAWithdrawnNamespace disallows the namespace of a claim's object, while the claim is to move to
// another namespace that it may choose.
func TestNoPasswordFlowsFromAWithdrawnNamespace(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	old, other := f.hubNamespace(f.class+"-old"), f.hubNamespace(f.class+"-other")
	allow := func(names ...string) {
		f.editClass(func(a *fleetv1alpha1.AgentSpec) {
			a.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{List: names}
		})
	}
	allow(old, other)
	f.targetAnnotation(old)
	f.start()
	f.claim("db", withSecret("db-conn"))
	f.pushedTo(old, "db")
	hub, err := f.get(f.hub, old, "db")
	if err != nil {
		t.Fatal(err)
	}
	secret := f.connectionSecret("db-conn", hub, "one")
	f.recorded("db", hub)
	password := func(want string) func() error {
		return func() error {
			got := &corev1.Secret{}
			err := f.workload.Get(f.Ctx, types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}, got)
			if err != nil || string(got.Data["password"]) != want {
				return fmt.Errorf("the password is %q: %w", got.Data["password"], err)
			}
			return nil
		}
	}
	f.Within("the password arrives", password("one"))

	f.targetAnnotation(other)
	f.synced("db", fleetv1alpha1.ReasonTargetNamespaceChanged)
	allow(other)
	f.settled()
	f.Edit(f.hub, secret, func() { secret.Data["password"] = []byte("two") })
	f.settled()
	if err := password("one")(); err != nil {
		t.Errorf("want no password from a namespace that was taken away: %v", err)
	}
	allow(old, other)
	f.Within("the password arrives when the namespace is allowed again", password("two"))
}
