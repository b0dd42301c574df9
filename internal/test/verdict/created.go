// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// Created returns an object as an API server returns it right after it was created, before any controller has processed
// it: without the status that it was sent with, and with the defaults of its definition, which is in that file of the
// repository.
func Created(t *testing.T, definition string, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), definition))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	return CreatedBy(t, crd, object)
}

// CreatedBy is Created with a given definition.
func CreatedBy(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	internal := &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, internal, nil)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		t.Fatal(err)
	}
	out := object.DeepCopy()
	delete(out.Object, "status")
	out.SetGeneration(1)
	defaulting.Default(out.Object, structural)
	return out
}
