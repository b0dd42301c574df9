// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	w.lookAfter([]*declared{d}, 0, references.Tenancy{})
	gk := schema.GroupKind{Group: hubGroup, Kind: "Network"}
	if w.marked(gk.WithVersion("v2")) == nil || w.marked(gk.WithVersion("v3")) != nil || w.marked(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}) != nil {
		t.Error("want what is marked to be known of the kinds that are looked after, by version")
	}
}
