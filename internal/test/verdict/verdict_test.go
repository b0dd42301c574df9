// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// repository visits the files of a folder of the repository.
func repository(t *testing.T, folder, suffix string, visit func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(testenv.Root(), folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
			return err
		}
		text, err := os.ReadFile(path)
		visit(path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryKindIsJudged checks that each kind that Masthead defines has a health check for Argo CD and a table of
// verdicts.
func TestEveryKindIsJudged(t *testing.T) {
	var tests strings.Builder
	repository(t, "pkg", "_test.go", func(_ string, text []byte) { tests.Write(text) })
	kinds := 0
	repository(t, "config/crd", ".yaml", func(path string, text []byte) {
		crd := struct {
			Kind string
			Spec struct {
				Group string
				Names struct{ Kind, Plural string }
			}
		}{}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			return
		}
		kinds++
		object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
		if _, err := gitops(t).argo(schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}, object); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		table := regexp.MustCompile(`func TestVerdictsOn` + crd.Spec.Names.Kind + `(e?s)\(`)
		if !table.MatchString(tests.String()) {
			t.Errorf("%s: there is no table of verdicts, %s", path, table)
		}
	})
	if kinds == 0 {
		t.Error("found no kinds")
	}
}

// TestEveryReasonIsTaken checks that the tables, which choose groups of reasons by their comments, miss no group.
func TestEveryReasonIsTaken(t *testing.T) {
	taken := []string{}
	for _, kind := range []string{
		"of an EnrollmentClass", "of a HealthRule", "of an ApplicationReport", "of a ClusterImport", "of a ClusterProfile", "of a claim", "in events",
	} {
		for name := range Reasons(t, "apis/fleet/v1alpha1", kind) {
			taken = append(taken, name)
		}
	}
	for name := range Reasons(t, "apis/fleet/v1alpha1") {
		if !slices.Contains(taken, name) {
			t.Errorf("the comment of %s, or of its group, does not say of which kind it is a reason", name)
		}
	}
}

// TestReadsAsDocumented checks the tools with objects for which their own documentation states the result.
func TestReadsAsDocumented(t *testing.T) {
	object := func(generation, observed int64, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": generation},
			"status":   map[string]any{"observedGeneration": observed, "conditions": conditions},
		}}
	}
	condition := func(kind, status string) any {
		return map[string]any{"type": kind, "status": status, "reason": "Because", "message": "It is so"}
	}
	kind := schema.GroupKind{Group: "fleet.masthead.dev", Kind: "EnrollmentClass"}
	Table{Kind: kind, Cases: map[string]Case{
		"Ready":       {Reason: "Ready is True.", Object: object(1, 1, condition("Ready", "True")), Want: Current},
		"NotReady":    {Reason: "Ready is False.", Object: object(1, 1, condition("Ready", "False")), Want: InProgress},
		"Unknown":     {Reason: "Ready is Unknown.", Object: object(1, 1, condition("Ready", "Unknown")), Want: InProgress},
		"Behind":      {Reason: "The status is about an earlier generation.", Object: object(2, 1, condition("Ready", "True")), Want: InProgress},
		"Stalled":     {Reason: "Stalled is worse than Ready.", Object: object(1, 1, condition("Ready", "True"), condition("Stalled", "True")), Want: Failed},
		"NotStalled":  {Reason: "Stalled is not True.", Object: object(1, 1, condition("Ready", "True"), condition("Stalled", "False")), Want: Current},
		"Reconciling": {Reason: "Something is under way.", Object: object(1, 1, condition("Ready", "True"), condition("Reconciling", "True")), Want: InProgress},
	}}.Check(t)
}
