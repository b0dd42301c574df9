// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// TestSamplesAreValid creates everything in the samples, strictly, and verifies that every component exists as the KEP
// selects it, and nothing else.
func TestSamplesAreValid(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "application", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no samples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			var apps []*appsv1alpha1.Application
			var others []*unstructured.Unstructured
			for _, u := range documents(t, file) {
				u.SetNamespace(metav1.NamespaceDefault)
				if err := workload.Create(t.Context(), u.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict), client.DryRunAll); err != nil {
					t.Errorf("What people copy must work: %v", err)
				}
				if u.GetKind() != "Application" {
					others = append(others, u)
					continue
				}
				app := &appsv1alpha1.Application{}
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, app); err != nil {
					t.Fatal(err)
				}
				apps = append(apps, app)
			}
			others = slices.DeleteFunc(others, func(u *unstructured.Unstructured) bool {
				return slices.ContainsFunc(apps, func(app *appsv1alpha1.Application) bool { return isDiscovered(app, u) })
			})
			var wanted, there []string
			for _, app := range apps {
				for name, kind := range app.Spec.Components {
					wanted = append(wanted, fmt.Sprintf("%s: %s/%s %s %s", app.Name, kind.Group, kind.Version, kind.Kind, name))
				}
				selector, err := app.Spec.Selector.AsSelector()
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range others {
					if u.GetAnnotations()[appsv1alpha1.ApplicationAnnotation] == app.Name && selector.Matches(labels.Set(u.GetLabels())) {
						gvk := u.GroupVersionKind()
						there = append(there, fmt.Sprintf("%s: %s/%s %s %s", app.Name, gvk.Group, gvk.Version, gvk.Kind, u.GetName()))
					}
				}
			}
			slices.Sort(wanted)
			slices.Sort(there)
			if len(there) != len(others) || !slices.Equal(wanted, there) {
				t.Errorf("want the components %q, got %q of %d objects", wanted, there, len(others))
			}
		})
	}
}

// isDiscovered reports whether an Application finds an object by its Helm release.
func isDiscovered(app *appsv1alpha1.Application, u *unstructured.Unstructured) bool {
	if app.Spec.Discover == nil {
		return false
	}
	release, gvk := u.GetAnnotations(), u.GroupVersionKind()
	return slices.Contains(app.Spec.Discover.Kinds, appsv1alpha1.DiscoveredKind(gvk)) &&
		slices.ContainsFunc(app.Spec.Discover.Sources, func(s appsv1alpha1.DiscoverySource) bool {
			return s.HelmRelease != nil && s.HelmRelease.Name == release[appsv1alpha1.HelmReleaseNameAnnotation] &&
				u.GetNamespace() == release[appsv1alpha1.HelmReleaseNamespaceAnnotation]
		})
}

func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var list []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(u.Object) > 0 {
			list = append(list, u)
		}
	}
}
