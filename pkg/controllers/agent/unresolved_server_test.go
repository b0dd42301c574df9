// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/references"
)

// newReferencesFixture returns a fixture whose claims can have references.
func newReferencesFixture(t *testing.T) *fixture {
	t.Helper()
	f := prepareFixture(t)
	f.EditHubCRD(func(crd *apiextensionsv1.CustomResourceDefinition) {
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["references"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}},
		}
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	})
	f.start()
	return f
}

// withReference makes a claim take its version from a ConfigMap.
func withReference(policy map[string]any) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		u.Object["spec"] = map[string]any{
			"storageGB": int64(20),
			"references": []any{map[string]any{
				"resource": "configmaps", "name": "settings", "fromFieldPath": "data.version", "toFieldPath": "spec.version", "policy": policy,
			}},
		}
	}
}

// resolves acts as the reference resolver: it fills the field, and sets the condition that all are resolved.
func (f *fixture) resolves(name, version string) {
	f.T.Helper()
	filled := f.NewClaim(f.Namespace, name)
	_ = unstructured.SetNestedField(filled.Object, version, "spec", "version")
	owner := client.FieldOwner(references.FieldManager + "-hub-a")
	if err := f.Workload.Apply(f.Ctx, client.ApplyConfigurationFromUnstructured(filled), owner); err != nil {
		f.T.Fatal(err)
	}
	f.WaitForMessage(name, fleetv1alpha1.ReasonReferencesUnresolved)
	f.concludes(name, metav1.ConditionTrue)
}

// concludes writes the references condition, beside the existing conditions.
func (f *fixture) concludes(name string, status metav1.ConditionStatus) {
	f.T.Helper()
	f.Within("the condition of references is written", func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, name)
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(getConditions(u), func(c any) bool {
			theirs, ok := c.(map[string]any)
			return ok && theirs["type"] == commonv1alpha1.ConditionReferencesResolved
		})
		_ = unstructured.SetNestedSlice(u.Object, append(kept, map[string]any{
			"type": commonv1alpha1.ConditionReferencesResolved, "status": string(status), "reason": "Resolved", "message": "",
			"observedGeneration": u.GetGeneration(), "lastTransitionTime": "2026-01-02T03:04:05Z",
		}), "status", "conditions")
		return f.Workload.Status().Update(f.Ctx, u)
	})
}

func getConditions(u *unstructured.Unstructured) []any {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	return conditions
}

// TestProvisionSomethingElseWithUnresolvedReferences: a claim with unresolved references is not its user's intent.
func TestProvisionSomethingElseWithUnresolvedReferences(t *testing.T) {
	t.Parallel()
	f := newReferencesFixture(t)
	f.CreateClaim("db", withReference(map[string]any{"resolve": "Always"}))
	f.WaitForSynced("db", fleetv1alpha1.ReasonReferencesUnresolved)
	f.WaitForIdle()
	if _, err := f.GetClaim(f.Hub, f.Target, "db"); !apierrors.IsNotFound(err) {
		t.Errorf("want nothing in the hub, got %v", err)
	}

	f.resolves("db", "8.0")
	hub := f.WaitForPushed("db")
	if got, _, _ := unstructured.NestedString(hub.Object, "spec", "version"); got != "8.0" {
		t.Errorf("want what references filled in to be the user's in the hub, got %v", hub.Object["spec"])
	}
	shown := f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if condition.Entry(shown, commonv1alpha1.ConditionReferencesResolved) == nil {
		t.Errorf("want the condition of references to stay, got %v", shown.Object["status"])
	}
	f.MarkReady("db", "db.example.org")
	f.Within("the hub's status comes beside it", func() error {
		u, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err == nil && (condition.Entry(u, "Ready") == nil || condition.Entry(u, commonv1alpha1.ConditionReferencesResolved) == nil) {
			return fmt.Errorf("the status is %v", u.Object["status"])
		}
		return err
	})

	// The source changes: the claim is pushed when the new value is there, and not before.
	f.resolves("db", "8.1")
	f.Within("the new value is pushed", func() error {
		u, err := f.GetClaim(f.Hub, f.Target, "db")
		if got, _, _ := unstructured.NestedString(u.Object, "spec", "version"); err == nil && got != "8.1" {
			return fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// TestUndoAConditionOfOthersByAStaleStatus: the list of conditions is written whole, so only to the claim that was
// read.
func TestUndoAConditionOfOthersByAStaleStatus(t *testing.T) {
	t.Parallel()
	f := newReferencesFixture(t)
	f.CreateClaim("db", withReference(nil))
	stale := f.WaitForSynced("db", fleetv1alpha1.ReasonReferencesUnresolved)
	f.stopAgent()
	f.concludes("db", metav1.ConditionTrue)

	status := map[string]any{"conditions": getConditions(stale)}
	status["conditions"] = append(getConditions(stale), map[string]any{
		"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-02T03:04:05Z",
	})
	patch, err := propagation.StatusPatch(stale, status)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Workload.Status().Patch(f.Ctx, propagation.Shell(stale), patch); !apierrors.IsConflict(err) {
		t.Errorf("want a status that was made of an old claim to be refused, got %v", err)
	}
	now, err := f.GetClaim(f.Workload, f.Namespace, "db")
	if err != nil {
		t.Fatal(err)
	}
	if condition.Entry(now, commonv1alpha1.ConditionReferencesResolved) == nil {
		t.Errorf("want the condition of others to stay, got %v", now.Object["status"])
	}

	// Nor is it written to another claim of the same name.
	if err := f.Workload.Delete(f.Ctx, now); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.CreateClaim("db", withReference(nil))
	if err := f.Workload.Status().Patch(f.Ctx, propagation.Shell(stale), patch); !apierrors.IsConflict(err) {
		t.Errorf("want the status of another claim to be refused, got %v", err)
	}
}
