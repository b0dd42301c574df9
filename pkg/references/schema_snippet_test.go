// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// TestSnippetIsRecognised: the controller takes a kind with the pasted schema for one with references.
func TestSnippetIsRecognised(t *testing.T) {
	data, _ := yaml.Marshal(snippet(t))
	var pasted map[string]apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict(data, &pasted); err != nil {
		t.Fatal(err)
	}
	whole := NewSchema(&apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Properties: pasted}}})
	if !whole.DeclaresReferences() {
		t.Error("it is not recognised as spec.references")
	}
}

func snippet(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "references", "schema.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.UnmarshalStrict(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutDescriptions is a schema without its descriptions. A field that is named "description" is kept.
func withoutDescriptions(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, field := range v {
			if _, isText := field.(string); key != "description" || !isText {
				out[key] = withoutDescriptions(field)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			out = append(out, withoutDescriptions(e))
		}
		return out
	}
	return value
}
