// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command referenceschema prints the schema of spec.references from a CRD, for authors of XRDs and CRDs to paste.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "referenceschema:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: referenceschema CRD")
	}
	data, err := os.ReadFile(filepath.Clean(args[0])) //nolint:gosec // The caller names it.
	if err != nil {
		return fmt.Errorf("cannot read the CRD: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		return fmt.Errorf("cannot parse the CRD: %w", err)
	}
	references, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["references"]
	if !ok {
		return errors.New("the CRD has no spec.references")
	}
	text, err := yaml.Marshal(map[string]any{"references": references})
	if err != nil {
		return fmt.Errorf("cannot write the schema: %w", err)
	}
	if _, err := io.WriteString(out, "# Goes below the properties of spec in the schema of an XRD or a CRD. Made by `make generate`.\n"+string(text)); err != nil {
		return fmt.Errorf("cannot write the schema: %w", err)
	}
	return nil
}
