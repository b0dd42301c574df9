// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// TestSampleHasTheSnippet compares the schema in the sample XRD with the file.
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

// TestExamplesOfTheDocs resolves the seed's fmt and template examples, which docs/references.md shows as CEL.
func TestExamplesOfTheDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "references.md"))
	if err != nil {
		t.Fatal(err)
	}
	server := &objects{of: map[string]map[string]any{
		"ConfigMap.v1/team-a/common-settings": content(t, `{data: {region: eu-west-1}}`),
		"ConfigMap.v1/team-a/accounts":        content(t, `{data: {prod: "123456789012"}}`),
		"Secret.v1/team-a/accounts":           content(t, `{data: {prodAWSAccountID: `+b64("123456789012")+`}}`),
	}}
	marked := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Properties: map[string]apiextensionsv1.JSONSchemaProps{"forProvider": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"directoryArn": {Type: "string", Format: FormatSecret},
		}}}},
	}})
	const want = "arn:aws:clouddirectory:eu-west-1:123456789012:schema/published/cognito/1.0"
	found := 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "spec.forProvider.directoryArn") {
			continue
		}
		found++
		obj := object(t, "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: thing, namespace: team-a}\nspec:\n"+block)
		result, err := NewResolver().Resolve(t.Context(), Request{
			Object: obj, References: getReferences(t, obj), Reader: server, Mapper: mapper(), Schema: marked,
		})
		got, _, _ := unstructured.NestedString(result.Object.Object, "spec", "forProvider", "directoryArn")
		if err != nil || got != want {
			t.Errorf("want %q, got %q, %v, of\n%s", want, got, err, block)
		}
	}
	if found != 2 {
		t.Errorf("want the example with a format and that of a template, found %d", found)
	}
}
