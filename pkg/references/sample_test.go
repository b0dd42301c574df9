// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/test/testenv"
)

// TestSampleHasTheSnippet compares the schema in the XRD that is a sample with the file.
func TestSampleHasTheSnippet(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "references", "composite-api.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(data), "\n---\n")
	var xrd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema map[string]any
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(document), &xrd); err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedFieldNoCopy(xrd.Spec.Versions[0].Schema.OpenAPIV3Schema, "properties", "spec", "properties", "references")
	if diff := cmp.Diff(withoutDescriptions(snippet(t)["references"]), got); err != nil || diff != "" {
		t.Errorf("%v\n-config/references/schema.yaml, +the sample:\n%s", err, diff)
	}
}
