// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// TestMarkedFieldsOfEachVersion: an object can be read in each version that is served, whichever of them declares
// references.
func TestMarkedFieldsOfEachVersion(t *testing.T) {
	crd, err := withReferences("Network", apiextensionsv1.NamespaceScoped)
	if err != nil {
		t.Fatal(err)
	}
	secret := apiextensionsv1.JSONSchemaProps{Type: "string", Format: references.FormatSecret}
	version := func(name string, served bool, field apiextensionsv1.JSONSchemaProps) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: served, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"x": field}}},
			}},
		}
	}
	crd.Spec.Versions = append(crd.Spec.Versions,
		version("v2", true, secret), version("v3", true, apiextensionsv1.JSONSchemaProps{Type: "string"}), version("v4", false, secret))
	d := declaredBy(crd)
	if got := slices.Sorted(maps.Keys(d.marked)); !slices.Equal(got, []string{"v1", "v2"}) {
		t.Errorf("want what is marked in each version that is served, got it in %v", got)
	}
	_, w := idle(t)
	w.lookAfter([]*declared{d}, references.Tenancy{})
	gk := schema.GroupKind{Group: hubGroup, Kind: "Network"}
	if w.marks.in(gk.WithVersion("v2")) == nil || w.marks.in(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) != nil {
		t.Error("want what is marked to be known by version")
	}
	if w.marks.in(gk.WithVersion("v3")) == nil {
		t.Error("want all of a version to be marked whose fields may be those of another one by other names")
	}
}

// TestReadSecretThroughKindWithoutReferences: a field that is marked for Secret data stays marked in a kind that
// declares no references itself, or that is beyond the limit of managed kinds.
func TestReadSecretThroughKindWithoutReferences(t *testing.T) {
	secret := apiextensionsv1.JSONSchemaProps{Type: "string", Format: references.FormatSecret}
	definition := func(kind string, field apiextensionsv1.JSONSchemaProps) *unstructured.Unstructured {
		crd := openDefinition(hubGroup, kind, strings.ToLower(kind)+"s")
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"status": {
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"password": field},
			}},
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: content}
	}
	if _, kept := reduceDefinition(definitionKind, definition("Plain", apiextensionsv1.JSONSchemaProps{Type: "string"})); kept {
		t.Error("want nothing to be kept of a definition that neither declares references nor marks fields")
	}
	record, kept := reduceDefinition(definitionKind, definition("Database", secret))
	if !kept || record.Size() == 0 || record.Size() > 1000 {
		t.Fatalf("want only the marked fields to be kept, got %+v", record)
	}
	network, err := withReferences("Network", apiextensionsv1.NamespaceScoped)
	if err != nil {
		t.Fatal(err)
	}
	defined := make([]*declared, 0, maxKinds+2)
	for i := range maxKinds {
		defined = append(defined, &declared{kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: hubGroup, Version: "v1", Kind: fmt.Sprint("Kind", i)}, Resource: fmt.Sprint("kinds", i),
		}})
	}
	defined = append(defined, declaredBy(network), record.(*declared)) //nolint:forcetypeassert // A test.
	_, w := idle(t)
	w.lookAfter(defined, references.Tenancy{})
	for _, kind := range []string{"Database", "Network"} {
		if w.marks.in(schema.GroupVersionKind{Group: hubGroup, Version: "v1", Kind: kind}) == nil {
			t.Errorf("want the marked fields of %s to be known", kind)
		}
	}
	if rules, _, _, _ := w.rules(kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Group: hubGroup, Version: "v1", Kind: "Database"}}); rules != nil {
		t.Error("want a kind without references not to be managed")
	}
}
