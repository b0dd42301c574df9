// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// What flows down, a status and a Secret, does not wait for what flows up.
func TestSecretsAndStatusArriveWhileNothingCanBePushed(t *testing.T) {
	for name, block := range map[string]func(f *fixture, claim *unstructured.Unstructured) string{
		"Rejected": func(f *fixture, claim *unstructured.Unstructured) string {
			f.limitInHub(100)
			f.edit(f.workload, claim, func() { _ = unstructured.SetNestedField(claim.Object, int64(1000), "spec", "storageGB") })
			return reason.ReasonRejected
		},
		"TargetNamespaceChanged": func(f *fixture, _ *unstructured.Unstructured) string {
			f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.DefaultTargetNamespace = f.hubNamespace(f.class + "-new") })
			return reason.ReasonTargetNamespaceChanged
		},
		"KindNotOffered": func(f *fixture, _ *unstructured.Unstructured) string {
			f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.APIGroups = []string{"others.example.org"} })
			return reason.ReasonKindNotOffered
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			claim := f.claim("db", withSecret("db-conn"))
			hub := f.pushed("db")
			secret := f.connectionSecret("db-conn", hub, "one")
			f.ready("db", "a")
			f.recorded("db", hub)
			f.synced("db", reason.ReasonSynced)
			reason := block(f, claim)
			f.synced("db", reason)

			f.edit(f.hub, secret, func() { secret.Data["password"] = []byte("two") })
			key := types.NamespacedName{Namespace: f.namespace, Name: "db-conn"}
			arrived := func() error {
				got := &corev1.Secret{}
				if err := f.workload.Get(f.ctx, key, got); err != nil || string(got.Data["password"]) != "two" {
					return fmt.Errorf("the password is %q: %w", got.Data["password"], err)
				}
				return nil
			}
			f.eventually("a password that was rotated follows", arrived)
			got := &corev1.Secret{}
			if err := f.workload.Get(f.ctx, key, got); err != nil {
				t.Fatal(err)
			}
			if err := f.workload.Delete(f.ctx, got); err != nil {
				t.Fatal(err)
			}
			f.eventually("a copy that was deleted comes back", arrived)
			f.ready("db", "b")
			f.eventually("the status follows", func() error {
				if address, _, _ := unstructured.NestedString(f.mustGet("db").Object, "status", "address"); address != "b" {
					return fmt.Errorf("the address is %q", address)
				}
				return nil
			})
			f.synced("db", reason)
		})
	}
}
