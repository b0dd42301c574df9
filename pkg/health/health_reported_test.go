// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
)

// reported is an object that users or authors of operators have reported or documented, with the health that it has.
type reported struct {
	Reason string              `json:"reason"`
	Source string              `json:"source"`
	Want   appsv1alpha1.Health `json:"want"`

	// ByRule says that a rule is needed to understand the object; without it, it is not Healthy.
	ByRule bool `json:"byRule,omitempty"`

	Object runtime.RawExtension `json:"object"`
}

// TestReported judges objects that were once judged wrongly, here or elsewhere, with the library and without.
func TestReported(t *testing.T) {
	paths, err := filepath.Glob("library/testdata/reported/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found no objects (%v)", err)
	}
	library := newLibrary(t)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var r reported
			if err := yaml.UnmarshalStrict(data, &r); err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(r.Object.Raw); err != nil {
				t.Fatal(err)
			}
			if r.Reason == "" || r.Source == "" {
				t.Error("it says neither why nor by whom")
			}
			if got := library.New().Assess(object, true); got.Health != r.Want {
				t.Errorf("%s\nwith the library: want %s, got %+v", r.Reason, r.Want, got)
			}
			got := health.New().Assess(object, true)
			if right := got.Health == r.Want; right == r.ByRule || !right && got.Health == appsv1alpha1.HealthHealthy {
				t.Errorf("%s\nwithout: want %s (only by a rule: %v), got %+v", r.Reason, r.Want, r.ByRule, got)
			}
		})
	}
}
