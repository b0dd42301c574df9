// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

func TestTextsAreHeldOnce(t *testing.T) {
	for _, tc := range []struct {
		name, reason, text string
		once               bool
	}{
		{name: "usual", text: "Healthy", once: true, reason: "Every Application says it."},
		{name: "longest", text: strings.Repeat("x", maxTextSize), once: true, reason: "The bound is the last size that is shared."},
		{name: "long", text: strings.Repeat("x", maxTextSize+1), reason: "Somebody could fill the memory with it."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			held := &texts{}
			first, second := held.share(strings.Clone(tc.text)), held.share(strings.Clone(tc.text))
			if first != tc.text || second != tc.text {
				t.Fatalf("want %q, got %q and %q", tc.text, first, second)
			}
			if once := unsafe.StringData(first) == unsafe.StringData(second); once != tc.once {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.once, once)
			}
		})
	}
}

func TestTextsAreBounded(t *testing.T) {
	held := &texts{}
	for i := range 3 * maxTexts {
		held.share(fmt.Sprint("text ", i))
		if len(held.known) > maxTexts {
			t.Fatalf("want %d texts at most, got %d", maxTexts, len(held.known))
		}
	}
}

// What is kept of an Application says the same as what arrived, but for the metadata that means nothing here.
func TestSharingTextsChangesNothing(t *testing.T) {
	now := metav1.Now().Rfc3339Copy()
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "u"},
		Spec: appsv1alpha1.ApplicationSpec{
			Type: "shop", Version: "1", Dependencies: []string{"db"},
			Components: map[string]appsv1alpha1.ComponentKind{"web": {Group: "apps", Version: "v1", Kind: "Deployment"}, "config": {Version: "v1", Kind: "ConfigMap"}},
		},
		Status: appsv1alpha1.ApplicationStatus{
			Ready: "True", Health: appsv1alpha1.HealthHealthy, ComponentsInstalled: "2/2", Message: "All is well.", Installed: []string{"web", "config"},
			Conditions:   []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready", Message: "It is.", LastTransitionTime: now}},
			Components:   []appsv1alpha1.ComponentStatus{{Name: "web", Group: "apps", Kind: "Deployment", Installed: "True", Health: "Healthy", Reason: "r", Message: "m", Since: &now}},
			Dependencies: []appsv1alpha1.DependencyStatus{{Name: "db", Installed: "False", Ready: "Unknown", Health: "Missing"}},
		},
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
	if err != nil {
		t.Fatal(err)
	}
	r := testReducer()
	for range 2 {
		rec, kept := r.reduce(applicationKind, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)})
		if !kept {
			t.Fatal("want the Application to be kept")
		}
		got, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rec.(*applicationRecord).application)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint(fields); fmt.Sprint(got) != want {
			t.Errorf("want %s\ngot %v", want, got)
		}
	}
}
