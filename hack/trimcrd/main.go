// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command trimcrd removes the descriptions from a part of the schema of a CRD: `trimcrd FILE PATH`, where PATH is the
// dotted path of a field, for example spec.healthCheck.template. The field's own description stays.
//
// The schema of a Pod template is about 500 KiB with its descriptions. A CRD of that size cannot be installed with
// `kubectl apply`, which keeps a copy of it in an annotation of at most 256 KiB.
package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: trimcrd FILE PATH")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "trimcrd:", err)
		os.Exit(1)
	}
}

func run(file, path string) error {
	in, err := os.ReadFile(file) //nolint:gosec // The caller says which.
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(in, &crd); err != nil {
		return fmt.Errorf("cannot read %s: %w", file, err)
	}
	spec, _ := crd["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		schema, _ := version["schema"].(map[string]any)
		node, _ := schema["openAPIV3Schema"].(map[string]any)
		for field := range strings.SplitSeq(path, ".") {
			properties, _ := node["properties"].(map[string]any)
			node, _ = properties[field].(map[string]any)
		}
		if node == nil {
			return fmt.Errorf("%s has no field %s", file, path)
		}
		own := node["description"]
		trim(node)
		node["description"] = own
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644) //nolint:gosec // It is a file of the repository.
}

// trim removes the descriptions of a schema and of everything below it. A property can be called "description", too.
func trim(node map[string]any) {
	if _, isText := node["description"].(string); isText {
		delete(node, "description")
	}
	if properties, ok := node["properties"].(map[string]any); ok {
		for _, p := range properties {
			if p, ok := p.(map[string]any); ok {
				trim(p)
			}
		}
	}
	for _, below := range []string{"items", "additionalProperties"} {
		if b, ok := node[below].(map[string]any); ok {
			trim(b)
		}
	}
}
