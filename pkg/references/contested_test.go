// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFightOverAField: a field that another manager applies is not written, with any value.
func TestFightOverAField(t *testing.T) {
	apply, update := metav1.ManagedFieldsOperationApply, metav1.ManagedFieldsOperationUpdate
	const annotated = `{"f:metadata":{"f:annotations":{"f:kubectl.kubernetes.io/last-applied-configuration":{}}}}`
	cases := map[string]struct {
		reason      string
		manager     string
		operation   metav1.ManagedFieldsOperationType
		subresource string
		fields      string
		applied     string
		path        string
		whole, want string
	}{
		"Applied":     {reason: "It applies it again.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:region":{}}}`, path: "spec.region", want: "flux"},
		"Nothing":     {reason: "It applies another field.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:mask":{}}}`, path: "spec.region"},
		"Updated":     {reason: "Who wrote it once does not write it again.", manager: "kubectl-edit", operation: update, fields: `{"f:spec":{"f:region":{}}}`, path: "spec.region"},
		"Status":      {reason: "It applies the status.", manager: "flux", operation: apply, subresource: "status", fields: `{"f:spec":{"f:region":{}}}`, path: "spec.region"},
		"OtherHub":    {reason: "Another hub has filled it before.", manager: "masthead-references-b", operation: apply, fields: `{"f:spec":{"f:region":{}}}`, path: "spec.region"},
		"NotOurs":     {reason: "The name only begins like ours.", manager: "mastheads", operation: apply, fields: `{"f:spec":{"f:region":{}}}`, path: "spec.region", want: "mastheads"},
		"Part":        {reason: "It applies a part of it.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:open":{"f:a":{}}}}`, path: "spec.open", want: "flux"},
		"EmptyObject": {reason: "Others may add to it.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:open":{}}}`, path: "spec.open.a"},
		"Itself":      {reason: "Others may add to it.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:open":{".":{}}}}`, path: "spec.open.a"},
		"Atomic":      {reason: "It is applied whole.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:atomic":{}}}`, path: "spec.atomic.a", whole: "spec.atomic", want: "flux"},
		"List":        {reason: "It is applied whole.", manager: "flux", operation: apply, fields: `{"f:spec":{"f:list":{}}}`, path: "spec.list[0].a", whole: "spec.list", want: "flux"},
		"Element": {
			reason: "It applies the element's field.", manager: "flux", operation: apply, path: "spec.routes[1].gateway", want: "flux",
			fields: `{"f:spec":{"f:routes":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:gateway":{}}}}}`,
		},
		"OtherElement": {
			reason: "It applies that of another element.", manager: "flux", operation: apply, path: "spec.routes[0].gateway",
			fields: `{"f:spec":{"f:routes":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:gateway":{}}}}}`,
		},
		"Placeholder": {
			reason: "Argo CD applies by default on its own side.", manager: "argocd-controller", operation: update, fields: annotated,
			applied: `{"spec":{"region":""}}`, path: "spec.region", want: "argocd-controller",
		},
		"WithoutIt": {reason: "It is not in what was applied.", manager: "argocd-controller", operation: update, fields: annotated, applied: `{"spec":{}}`, path: "spec.region"},
		"WholeList": {
			reason: "Lists are replaced.", manager: "argocd-controller", operation: update, fields: annotated,
			applied: `{"spec":{"routes":[{"name":"a"}]}}`, path: "spec.routes[0].gateway", whole: "spec.routes", want: "argocd-controller",
		},
		"ListByHand":  {reason: "People do not apply all the time.", applied: `{"spec":{"routes":[{"name":"a"}]}}`, path: "spec.routes[0].gateway"},
		"FieldByHand": {reason: "It is theirs.", applied: `{"spec":{"routes":[{"name":"a","gateway":""}]}}`, path: "spec.routes[0].gateway", want: "kubectl"},
		"NoJSON":      {reason: "Anybody can write the annotation.", applied: `{`, path: "spec.region"},
		"NotAnApply":  {reason: "Nor are these managedFields of an API server.", manager: "flux", operation: apply, fields: `[]`, path: "spec.region"},
	}
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	atomic := apiextensionsv1.JSONSchemaProps{Type: "object", XMapType: new("atomic"), Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": text}}
	schema := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"atomic": atomic}},
	}})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := object(t, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {atomic: {a: x}, list: [{a: x}], routes: [{name: a}, {name: b}]}}`)
			if tc.applied != "" {
				u.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: tc.applied})
			}
			if tc.fields != "" {
				u.SetManagedFields([]metav1.ManagedFieldsEntry{{
					Manager: tc.manager, Operation: tc.operation, Subresource: tc.subresource, FieldsV1: metav1.NewFieldsV1(tc.fields),
				}})
			}
			_, got := Uncontested(u, Result{Filled: []string{tc.path}}, schema)
			want := ""
			if tc.want != "" {
				want = fmt.Sprintf("cannot apply the resolved values: %s: %s is applied by %q: remove it from what that applies", tc.path, cmp.Or(tc.whole, "the field"), tc.want)
			}
			if (got == nil) != (want == "") || got != nil && got.Error() != want {
				t.Errorf("%s Want %q, got %v", tc.reason, want, got)
			}
			if got != nil && strings.Contains(got.Error(), "\n") {
				t.Errorf("want one line, got %v", got)
			}
		})
	}
}

// TestOneContestedField: the other fields are filled.
func TestOneContestedField(t *testing.T) {
	u := object(t, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {}}`)
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "flux", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:region":{}}}`),
	}})
	got, contested := Uncontested(u, Result{Filled: []string{"spec.password", "spec.region", "spec.zone"}}, nil)
	if strings.Join(got.Filled, " ") != "spec.password spec.zone" || contested == nil || contested.Path != "spec.region" {
		t.Errorf("Want only the region to be left out, got %v (%v).", got.Filled, contested)
	}
}

// TestForgedManagedFields: an API server of a workload cluster can send anything.
func TestForgedManagedFields(t *testing.T) {
	for _, fields := range []string{
		`{"f:spec":{"f:routes":{"k:{\"name\":{\"a\":1}}":{}}}}`, `{"f:spec":{"f:routes":{"k:[]":{},"k:":{},"v:{}":{}}}}`, `{"f:spec":[1]}`, `null`,
	} {
		u := object(t, `{apiVersion: v1, kind: X, metadata: {name: a}, spec: {routes: [{name: {a: 1}}]}}`)
		u.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: "flux", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
		}})
		if got, contested := Uncontested(u, Result{Filled: []string{"spec.routes[0].gateway"}}, nil); contested != nil || len(got.Filled) != 1 {
			t.Errorf("%s: want nothing to be contested, got %v", fields, contested)
		}
	}
}
