// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/test/testenv"
)

var workload client.Client

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	env, err := testenv.New(filepath.Join(testenv.Root(), "config", "crd", "workload"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cfg, err := env.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot start the API server:", err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	scheme := runtime.NewScheme()
	if err := appsv1alpha1.AddToScheme(scheme); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if workload, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func TestApplicationIsAccepted(t *testing.T) {
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wordpress"},
		Spec: appsv1alpha1.ApplicationSpec{
			Components: map[string]appsv1alpha1.ComponentKind{"wordpress": {Group: "apps", Version: "v1", Kind: "StatefulSet"}},
			Selector:   appsv1alpha1.LabelSelector{MatchLabels: map[string]appsv1alpha1.LabelValue{"app.kubernetes.io/name": "wordpress"}},
		},
	}
	if err := workload.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
}
